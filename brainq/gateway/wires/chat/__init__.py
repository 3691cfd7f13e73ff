"""The common parts of chat wires: the fold of a turn's events, its stream, and the requests of clients."""
