"""One system a file: the reference turn as its users would write it.

Each with the durability that its documentation advises.
"""
