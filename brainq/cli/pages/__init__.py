"""Pages: what the command line prints about turns, sessions, the fleet and tokens."""
