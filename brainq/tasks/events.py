"""Task events about work that ended in no task: a worker died with it, or its turn's time was up.

Without them Flower shows such a call as running for ever, and such a turn not at all.
"""

from __future__ import annotations

from typing import Any

from brainq.broker import names
from brainq.contracts.claim import CallRef
from brainq.observe.logs import logger
from brainq.tasks.failed import failure_of

log = logger("brainq.tasks")


class TaskEvents:
    """Says it through the events of the `worker` (Celery's WorkController) whose sweeper found it."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None:
        self._failed(f"{turn_id}.end.{fence}", turn_id, names.TURN_ADVANCE, (session_id, turn_id, fence), did)

    def call(self, ref: CallRef, attempt: int, tool: str, did: str) -> None:
        args = (ref.session_id, ref.turn_id, ref.call_id, attempt)
        task_id = f"{ref.turn_id}.{ref.call_id}.{attempt}"
        self._failed(task_id, ref.turn_id, names.shown_name(tool), args, did)

    def _failed(self, task_id: str, turn_id: str, name: str, args: tuple[object, ...], did: str) -> None:
        failure = failure_of(did)
        # The consumer makes a new dispatcher each time it connects.
        dispatcher = getattr(getattr(self._worker, "consumer", None), "event_dispatcher", None)
        if failure is None or dispatcher is None:
            return
        try:
            dispatcher.send(
                "task-failed",
                uuid=task_id,
                root_id=turn_id,
                name=name,
                args=str(args),
                kwargs="{}",
                exception=repr(failure),
                traceback="",
            )
        except Exception as away:
            # Watching is not part of the work: what was to be told is in SQL and Redis.
            log.debug("a task event was not sent", why=type(away).__name__)
