"""The coordinator pool: turns. `brainq worker coordinator`, or `celery -A brainq.workers.coordinator worker`."""

from __future__ import annotations

from brainq.workers.tasks.pool_app import pool_app

app = pool_app(["coordinator"])
