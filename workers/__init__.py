"""One entry point a pool, for `celery -A workers.<pool> worker`."""
