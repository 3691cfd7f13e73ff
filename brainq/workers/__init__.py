"""The entry points of the pools, one for each pool and one for several: `celery -A brainq.workers.POOL worker`."""
