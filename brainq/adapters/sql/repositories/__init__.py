"""The repositories, one per table. Each method is one short transaction.

Methods whose first parameter is a `connection` are effects: they run inside the transaction of `Steps.run_once`.
"""
