"""The pages that the command line prints about turns, sessions, the fleet and tokens."""
