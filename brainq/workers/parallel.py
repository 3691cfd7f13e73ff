"""The parallel pool: read-only calls. `brainq worker parallel`, or `celery -A brainq.workers.parallel worker`."""

from __future__ import annotations

from brainq.workers.tasks.pool_app import pool_app

app = pool_app(["parallel"])
