"""What others see of a worker, and may ask of it: it answers questions, obeys no command, and hides the
arguments of tasks with content.
"""

from __future__ import annotations

from typing import Any

from celery.worker.consumer import control as stock
from celery.worker.request import Request

# Remote control that answers questions and takes no commands: publishing to its channel stops no worker.
#
# Celery's own lets one PUBLISH stop every worker, revoke tasks, or have a worker read another queue: a write in the
# pool of the reads.

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


# A task request whose arguments nobody sees: not Flower, not the logs, not `celery inspect`.

HIDDEN = "(hidden)"


class HiddenRequest(Request):
    """Use as `@app.task(Request="brainq.broker.celery57.inspection:HiddenRequest")` for tasks with content.

    The arguments reach the task and nothing else. What the task raises is not covered: its message goes to
    logs and events as it is, so it must not quote its input.
    """

    def __init__(self, message: Any, **options: Any) -> None:
        super().__init__(message, **options)
        self._argsrepr = self._kwargsrepr = HIDDEN
        # Celery's tracer takes the texts for its log lines from this dict, and falls back to the real
        # arguments if they are empty.
        self.request_dict.update(argsrepr=HIDDEN, kwargsrepr=HIDDEN)

    def info(self, safe: bool = False) -> dict[str, Any]:
        """What `celery inspect active` and `reserved` report; `safe` makes no difference."""
        return {**super().info(safe=True), "args": HIDDEN, "kwargs": HIDDEN}
