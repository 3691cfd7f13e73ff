"""`celery -A workers.coordinator worker`: in this repository, a short name for `brainq.workers.coordinator`."""

from brainq.workers.coordinator import app

__all__ = ["app"]
