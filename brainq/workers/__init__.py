"""One entry point a pool, for `celery -A brainq.workers.<pool> worker`."""
