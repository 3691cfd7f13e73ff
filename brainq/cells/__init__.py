"""Which cell a session, a turn, or a question about all of them goes to."""
