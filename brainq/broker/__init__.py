"""Celery: queues, doorbells, the app every worker runs, and what keeps a worker alive on bad input.

Nothing is imported here, so that `broker.names` and `broker.envelope` stay free of Celery.
"""
