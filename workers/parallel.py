"""`celery -A workers.parallel worker`: in this repository, a short name for `brainq.workers.parallel`."""

from brainq.workers.parallel import app

__all__ = ["app"]
