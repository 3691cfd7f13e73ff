"""One entry point for each pool, and one for several: `celery -A brainq.workers.POOL worker`."""
