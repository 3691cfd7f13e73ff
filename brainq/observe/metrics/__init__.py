"""Metrics: what is counted (`catalogue`), where it is kept until it is flushed (`counters`), how it is shown.

Counted in the memory of a process, at the one place where a fact is committed or a call returns, and flushed to Redis
every few seconds: nothing of it is on a turn's way.
"""
