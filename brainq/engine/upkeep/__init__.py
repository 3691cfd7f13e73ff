"""Upkeep: the repair of turns whose messages, workers or Redis data were lost.

The sweeper runs as a thread in every coordinator worker; any number may run at once. Redis gives each due turn to one
of them. A sweeper rings again for lost doorbells, rescues calls whose workers died, ends turns whose deadline passed
without a worker, sends results that the finalizer cannot send, and queues turns that only SQL knows.
"""
