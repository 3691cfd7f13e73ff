"""Several pools in one process: `brainq worker all`, or `celery -A brainq.workers.all worker`.

BRAINQ_POOLS names the pools, such as `coordinator,finalizer`; if unset, they are all four. BRAINQ_EFFECTS narrows the
serial pool. Each pool keeps its own threads, which BRAINQ_CONCURRENCY__POOL sets.
"""

from __future__ import annotations

import os

from brainq.workers.tasks.pool_app import chosen_pools, pool_app

app = pool_app(chosen_pools(os.environ.get("BRAINQ_POOLS", "")), os.environ.get("BRAINQ_EFFECTS", ""))
