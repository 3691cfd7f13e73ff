"""Abandoning a task of brainq's own pool: it is answered, and its thread is left to the function that keeps it."""

from __future__ import annotations

from collections.abc import Callable

from brainq.broker.running import current_run
from brainq.calls.own_thread import Abandon
from brainq.observe.logs import logger
from brainq.tasks.failed import WorkFailed, show

log = logger("brainq.tasks")


def current_task() -> Abandon | None:
    """The means to abandon the task that this thread runs; None in other pools, whose threads cannot be replaced."""
    run = current_run()
    if run is None:
        return None

    def abandon(settle: Callable[[], str]) -> None:
        failure: Exception | None = None
        try:
            show(settle())
        except Exception as raised:
            failure = raised
            if not isinstance(raised, WorkFailed):
                log.error("call not settled", failure=raised)
        run.abandon(failure)

    return abandon
