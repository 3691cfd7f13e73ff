"""What producers use: submit a turn, follow it, get its result."""
