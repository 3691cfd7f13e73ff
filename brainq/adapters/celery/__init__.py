"""Celery: queues, doorbells, the app that every worker runs, and the protection of workers against bad input.

Nothing is imported here, so that `adapters.celery.names` and `adapters.celery.envelope` stay free of Celery.
"""
