"""Work that may be cut off: child processes with their frames, guard and pool, and threads that are left behind."""
