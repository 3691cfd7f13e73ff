"""Upkeep: finding what was lost on the way, and ringing again.

The sweeper runs as a thread in every coordinator worker; any number may run at once. Redis hands each due turn
to one of them. It rings for lost doorbells, rescues calls whose workers died, ends turns whose deadline
passed without a worker, sends results that the finalizer cannot, and queues turns that only SQL knows.
"""
