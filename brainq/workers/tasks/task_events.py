"""The appearance of work in Celery's events, metrics and logs: the exceptions of failed work, and events about work
that has no task."""

from __future__ import annotations

from typing import Any

from brainq.adapters.celery import names
from brainq.contracts.claim import CallClaim, CallRef, Opened, TurnClaim
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.work_events import WorkEvents

log = logger("brainq.tasks")
MAX_REASON_CHARS = 64


class WorkFailed(Exception):
    """The failure of a task's work, as Celery's events, metrics and logs show it.

    It is raised after everything was recorded, and only for monitoring: nothing is retried or put back. Its text is one
    of brainq's words or the name of an error's class, and never the text of an error.
    """


class CallFailed(WorkFailed):
    """The failure of a call whose tool raised. Its text is the name of the error's class."""


class CallTimedOut(WorkFailed):
    """The failure of a call that was given up at its deadline."""


class CallUnknown(WorkFailed):
    """The failure of a write that began and whose end is unknown."""


class CallLost(WorkFailed):
    """The failure of a call whose worker was lost. The call is dispatched again."""


class TurnFailed(WorkFailed):
    """The failure of a turn. Its text is the stop reason."""


class TurnTimedOut(WorkFailed):
    """The failure of a turn that reached its deadline."""


class StepFailed(WorkFailed):
    """The failure of a finalizer step, which is tried again or given up. Its text is the name of the error's class."""


class JudgeFailed(WorkFailed):
    """The failure of a judgement, which is tried again or given up. Its text is the name of the error's class."""


class SubmitRejected(WorkFailed):
    """The failure of a foreign producer's submit that was refused. Its text is the name of the error's class.

    The turn's row in SQL has the reason.
    """


FAILURE_CLASSES: dict[WorkFailure, type[WorkFailed]] = {
    WorkFailure.CALL_FAILED: CallFailed,
    WorkFailure.CALL_TIMED_OUT: CallTimedOut,
    WorkFailure.CALL_UNKNOWN: CallUnknown,
    WorkFailure.CALL_LOST: CallLost,
    WorkFailure.TURN_FAILED: TurnFailed,
    WorkFailure.TURN_TIMED_OUT: TurnTimedOut,
    WorkFailure.STEP_FAILED: StepFailed,
    WorkFailure.JUDGE_FAILED: JudgeFailed,
    WorkFailure.SUBMIT_REJECTED: SubmitRejected,
}


def raise_failure(did: str) -> None:
    """Raise the exception that makes the task of failed work a failed task. Does nothing for any other work."""
    failure = failure_of(did)
    if failure is not None:
        raise failure


def failure_of(did: str) -> WorkFailed | None:
    """Return the exception of failed work, or None for any other work."""
    failed = did.failed if isinstance(did, WorkOutcome) else None
    if not isinstance(did, WorkOutcome) or failed is None:
        return None
    plain = did.why if did.why.isidentifier() and len(did.why) <= MAX_REASON_CHARS else ""
    return FAILURE_CLASSES[failed](plain) if plain else FAILURE_CLASSES[failed]()


class TaskEvents(WorkEvents):
    """Task events about work that no task shows: a call whose worker died, a turn whose time was up, or work
    that a thread continued with, without a doorbell. Without these events Flower shows such a call as running for
    ever, and such a turn or step not at all.

    worker   Celery's WorkController, whose event sender is used
    """

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None:
        self._failed(f"{turn_id}.end.{fence}", turn_id, names.TURN_ADVANCE, (session_id, turn_id, fence), did)

    def call(self, ref: CallRef, attempt: int, tool: str, did: str, rung_again_ms: int | None) -> None:
        """Send failures for both doorbells of a lost call, because it is unknown which one its worker answered."""
        args = (ref.session_id, ref.turn_id, ref.call_id, attempt)
        task_id = f"{ref.turn_id}.{ref.call_id}.{attempt}"
        self._failed(task_id, ref.turn_id, names.shown_name(tool), args, did)
        if rung_again_ms is not None:
            # These ids are those of lib/ring.lua.
            again = f"{task_id}.again-{rung_again_ms}"
            self._failed(again, ref.turn_id, names.shown_name(tool), args, did)

    def began(self, claim: Opened) -> None:
        """Report the begin of work, under the task id that its doorbell would have had."""
        if self._dispatcher() is None:
            return
        task_id, name, args = _task_of(claim)
        task = self._task(task_id, claim.turn_id, name, (claim.session_id, claim.turn_id, *args))
        self._send("task-received", **task, retries=0, eta=None, expires=None, parent_id=None)
        self._send("task-started", uuid=task_id)

    def ended(self, claim: Opened, did: str, took_s: float) -> None:
        if self._dispatcher() is None:
            return
        (task_id, _, _), failure = _task_of(claim), failure_of(did)
        if failure is None:
            self._send("task-succeeded", uuid=task_id, result="None", runtime=took_s)
        else:
            self._send("task-failed", uuid=task_id, exception=repr(failure), traceback="")

    def _failed(self, task_id: str, turn_id: str, name: str, args: tuple[object, ...], did: str) -> None:
        failure = failure_of(did)
        if failure is not None:
            task = self._task(task_id, turn_id, name, args)
            self._send("task-failed", **task, exception=repr(failure), traceback="")

    def _task(self, task_id: str, turn_id: str, name: str, args: tuple[object, ...]) -> dict[str, Any]:
        shown = f"({', '.join(map(str, args))})"  # in the form that the scripts' doorbells use
        return {"uuid": task_id, "root_id": turn_id, "name": name, "args": shown, "kwargs": "{}"}

    def _send(self, event: str, **fields: Any) -> None:
        dispatcher = self._dispatcher()
        if dispatcher is None:
            return
        try:
            dispatcher.send(event, **fields)
        except Exception as away:
            # Monitoring is not part of the work. The facts are in SQL and Redis.
            log.debug("a task event was not sent", why=type(away).__name__)

    def _dispatcher(self) -> Any:
        """Return Celery's dispatcher if task events are on. The consumer makes a new one each time it connects."""
        dispatcher = getattr(getattr(self._worker, "consumer", None), "event_dispatcher", None)
        if dispatcher is None or not dispatcher.enabled:
            return None
        return None if dispatcher.groups and "task" not in dispatcher.groups else dispatcher


def _task_of(claim: Opened) -> tuple[str, str, tuple[object, ...]]:
    """Return the id, the display name and the last arguments that the task of its doorbell would have had."""
    if isinstance(claim, CallClaim):
        task_id = f"{claim.turn_id}.{claim.call_id}.{claim.attempt}"
        return task_id, names.shown_name(claim.tool), (claim.call_id, claim.attempt)
    if isinstance(claim, TurnClaim):
        fence = claim.fence - 1
        return f"{claim.turn_id}.advance.{fence}", names.TURN_ADVANCE, (fence,)
    shown = names.shown_part(names.FINALIZE_STEP, claim.step) or names.FINALIZE_STEP
    return f"{claim.turn_id}.final.{claim.step}.{claim.fence - 1}", shown, (claim.step,)
