"""The finalizer pool: finalizer steps. `brainq worker finalizer`, or `celery -A brainq.workers.finalizer worker`."""

from __future__ import annotations

from brainq.adapters.celery.names import FINALIZER_QUEUES
from brainq.workers.tasks.pool_app import pool_app
from brainq.workers.tasks.register import finalizer_tasks

app = pool_app("finalizer", FINALIZER_QUEUES, finalizer_tasks)
