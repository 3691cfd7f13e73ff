"""A task request whose arguments nobody sees: not Flower, not the logs, not `celery inspect`."""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request

HIDDEN = "(hidden)"


class HiddenRequest(Request):
    """Use as `@app.task(Request="brainq.broker.request:HiddenRequest")` for tasks with content.

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
