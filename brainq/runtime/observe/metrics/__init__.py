"""Metrics: the `catalogue` of what is counted, the `counters` until they are flushed, and the exporters.

A process counts in memory, at the one place where a fact is committed or a call returns, and flushes to Redis every few
seconds. No turn waits for it.
"""
