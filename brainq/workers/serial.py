"""The serial pool: calls that write. `brainq worker serial`, or `celery -A brainq.workers.serial worker`.

BRAINQ_EFFECTS narrows it, such as `network`, or `local_write,destructive`: one class of effects alone.
"""

from __future__ import annotations

import os

from brainq.adapters.celery.names import SERIAL_QUEUES, tool_queue
from brainq.contracts.status import Effect
from brainq.errors import SetupError
from brainq.workers.tasks.pool_app import pool_app
from brainq.workers.tasks.register import call_tasks


def _queues(wanted: str) -> tuple[str, ...]:
    names = [name.strip().lower() for name in wanted.split(",") if name.strip()]
    known = {effect.value: tool_queue(effect) for effect in Effect if not effect.is_read}
    if unknown := sorted(set(names) - known.keys()):
        raise SetupError(f"BRAINQ_EFFECTS: {', '.join(unknown)} is none of {', '.join(known)}")
    return tuple(known[name] for name in names) or SERIAL_QUEUES


app = pool_app("serial", _queues(os.environ.get("BRAINQ_EFFECTS", "")), call_tasks)
