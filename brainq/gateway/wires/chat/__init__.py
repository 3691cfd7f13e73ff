"""The common parts of chat wires: one fold of a turn's events, its stream, and clients' requests."""
