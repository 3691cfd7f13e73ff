"""The parallel pool: read-only calls. `brainq worker parallel`, or `celery -A brainq.workers.parallel worker`."""

from __future__ import annotations

from brainq.adapters.celery.names import PARALLEL_QUEUES
from brainq.workers.tasks.pool_app import pool_app
from brainq.workers.tasks.register import call_tasks

app = pool_app("parallel", PARALLEL_QUEUES, call_tasks)
