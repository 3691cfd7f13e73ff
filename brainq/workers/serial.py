"""The serial pool: calls that write. Run it with `brainq worker serial` or `celery -A brainq.workers.serial worker`.

BRAINQ_EFFECTS restricts it to some effects, such as `network`, or `local_write,destructive`.
"""

from __future__ import annotations

import os

from brainq.workers.tasks.pool_app import pool_app

app = pool_app(["serial"], os.environ.get("BRAINQ_EFFECTS", ""))
