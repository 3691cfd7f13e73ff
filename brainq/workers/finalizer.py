"""The finalizer pool: finalizer steps. `brainq worker finalizer`, or `celery -A brainq.workers.finalizer worker`."""

from __future__ import annotations

from brainq.workers.tasks.pool_app import pool_app

app = pool_app(["finalizer"])
