"""`celery -A workers.serial worker`: in this repository, a short name for `brainq.workers.serial`."""

from brainq.workers.serial import app

__all__ = ["app"]
