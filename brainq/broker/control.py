"""Remote control that can be asked and not told: whoever can publish to its channel stops no worker.

Celery's own lets one PUBLISH stop every worker, revoke tasks, or have a worker read another queue: a write in the pool
of the reads.
"""

from __future__ import annotations

from typing import Any

from celery.worker.consumer import control as stock

ANSWERED = frozenset(
    {
        *("ping", "hello", "clock", "conf", "report", "stats", "active_queues", "query_task"),
        *("registered", "dump_tasks", "scheduled", "dump_schedule", "reserved", "dump_reserved"),
        *("active", "dump_active", "revoked", "dump_revoked"),
        # Flower switches events on, and asks for a heartbeat, when it starts.
        *("enable_events", "heartbeat"),
    }
)
"""The commands a worker answers: those that Flower's worker page and `celery inspect` need, and none that changes
what a worker does. A command of your own is not among them."""


class Control(stock.Control):
    """Celery's Control, without the commands that change what a worker does."""

    def __init__(self, c: Any, **kwargs: Any) -> None:
        super().__init__(c, **kwargs)
        node: Any = self.box.node
        node.handlers = {name: handler for name, handler in node.handlers.items() if name in ANSWERED}
