"""Work beside the caller's: child processes with guard and pool, event loops, and threads that can be abandoned."""
