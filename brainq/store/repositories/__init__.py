"""One repository a table: each method is one short transaction of its own.

Methods that take a `connection` first are effects: they run inside the transaction of `Steps.run_once`.
"""
