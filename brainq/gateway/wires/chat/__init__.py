"""What the wires of chats share: one fold of a turn's events, its stream, and clients' requests."""
