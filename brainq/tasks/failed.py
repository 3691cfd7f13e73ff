"""The exceptions by which a task is seen to have failed, in Celery's events, metrics and logs.

They are raised after everything was recorded and only for those who watch: nothing is retried or put back. Their text
is a word of ours or the name of an error's class, never what an error said.
"""

from __future__ import annotations

from brainq.contracts.did import Did, Failed


class WorkFailed(Exception):
    """What a task did, failed."""


class CallFailed(WorkFailed):
    """A tool raised; the name of the error's class."""


class CallTimedOut(WorkFailed):
    """A call was given up at its deadline."""


class CallUnknown(WorkFailed):
    """A write began, and nobody knows how it ended."""


class CallLost(WorkFailed):
    """The worker of a call was lost; the call is asked for again."""


class TurnFailed(WorkFailed):
    """A turn ended as failed; its stop reason."""


class TurnTimedOut(WorkFailed):
    """A turn reached its deadline."""


class StepFailed(WorkFailed):
    """A finalizer step failed, and is tried again or given up; the name of the error's class."""


class JudgeFailed(WorkFailed):
    """A judgement failed, and is tried again or given up; the name of the error's class."""


class SubmitRejected(WorkFailed):
    """What a foreign producer sent was refused; the name of the error's class. Its row in SQL says why."""


KINDS: dict[Failed, type[WorkFailed]] = {
    Failed.CALL_FAILED: CallFailed,
    Failed.CALL_TIMED_OUT: CallTimedOut,
    Failed.CALL_UNKNOWN: CallUnknown,
    Failed.CALL_LOST: CallLost,
    Failed.TURN_FAILED: TurnFailed,
    Failed.TURN_TIMED_OUT: TurnTimedOut,
    Failed.STEP_FAILED: StepFailed,
    Failed.JUDGE_FAILED: JudgeFailed,
    Failed.SUBMIT_REJECTED: SubmitRejected,
}

LONGEST_WHY = 64


def show(did: str) -> None:
    """Raise what makes the task of failed work a failed task; nothing for any other."""
    failure = failure_of(did)
    if failure is not None:
        raise failure


def failure_of(did: str) -> WorkFailed | None:
    """The exception of failed work; None for any other."""
    failed = did.failed if isinstance(did, Did) else None
    if not isinstance(did, Did) or failed is None:
        return None
    plain = did.why if did.why.isidentifier() and len(did.why) <= LONGEST_WHY else ""
    return KINDS[failed](plain) if plain else KINDS[failed]()
