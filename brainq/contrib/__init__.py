"""Optional parts of brainq. Each is found through an entry point; nothing outside this package imports one."""
