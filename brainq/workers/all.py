"""The entry point of a worker that serves several pools: `brainq worker all`, or `celery -A brainq.workers.all worker`.

BRAINQ_POOLS names the pools, such as `coordinator,finalizer`; if it is unset, the worker serves all four.
BRAINQ_EFFECTS limits the effects that the serial pool serves. Each pool has its own threads, whose number
BRAINQ_CONCURRENCY__POOL sets.
"""

from __future__ import annotations

import os

from brainq.workers.tasks.pool_app import chosen_pools, pool_app

app = pool_app(chosen_pools(os.environ.get("BRAINQ_POOLS", "")), os.environ.get("BRAINQ_EFFECTS", ""))
