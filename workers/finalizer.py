"""`celery -A workers.finalizer worker`: in this repository, a short name for `brainq.workers.finalizer`."""

from brainq.workers.finalizer import app

__all__ = ["app"]
