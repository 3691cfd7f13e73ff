"""The coordinator pool: turns. `brainq worker coordinator`, or `celery -A brainq.workers.coordinator worker`."""

from __future__ import annotations

from brainq.adapters.celery.names import COORDINATOR_QUEUES
from brainq.workers.tasks.pool_app import pool_app
from brainq.workers.tasks.register import coordinator_tasks

app = pool_app("coordinator", COORDINATOR_QUEUES, coordinator_tasks)
