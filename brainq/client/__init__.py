"""The producer's side: submit a turn, follow it, get its result."""
