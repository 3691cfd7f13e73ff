"""Redis: the truth about a turn while it lives. The only package that imports redis.

Every change is one Lua script (`lua/`, one operation a file); this package makes the key names, calls the
scripts by name and turns their replies into contracts.
"""
