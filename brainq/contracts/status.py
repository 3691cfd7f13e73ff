"""Effects of tools; states of turns and calls, each with its table of legal moves; and outcomes of doorbells.

The Lua scripts hold the truth. `tests/unit/contracts/test_moves.py` checks that every state is reachable and can end.
The seeded model test checks that no script makes an unlisted move.
"""

from __future__ import annotations

from enum import EnumType, StrEnum
from typing import Any, Literal, Self

RequestTryEnd = Literal["refused", "cut", "sent", "over"]
"""How a client's try of a request ended: refused, cut before all was sent, sent whole, or rejected for good."""


class _EffectNames(EnumType):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = ", ".join(f"Effect.{effect}" for effect in cls.__members__)
        raise AttributeError(f"Effect has no {name!r}; use one of {known}", name=name, obj=cls)


class Effect(StrEnum, metaclass=_EffectNames):
    """The effect of a tool. `READ_ONLY` calls run side by side; any other call runs alone, in the model's order, in a
    lane."""

    READ_ONLY = "read_only"
    LOCAL_WRITE = "local_write"
    NETWORK = "network"
    DESTRUCTIVE = "destructive"

    is_read: bool

    def __init__(self, value: str) -> None:
        self.is_read = value == "read_only"


class TurnState(StrEnum):
    """The states of a turn. The last four are its endings."""

    QUEUED = "queued"  # accepted; an earlier turn of its session is live, or the fleet has no capacity
    ACTIVE = "active"  # a coordinator advances it, or should; its deadline runs
    PARKED = "parked"  # everything open in it waits for people or outside results; its deadline does not run
    CLOSING = "closing"  # the write gate is shut and the ending decided; the finalizer runs
    COMPLETED = "completed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in FINAL_TURN_STATES


class Awaits(StrEnum):
    """The party that must act next for a turn to continue."""

    SESSION = "session"  # queued: its session's earlier turns
    ROOM = "room"  # queued: other turns of the fleet
    BRAIN = "brain"  # queued: other turns of its brain, which has a cap
    PAUSED = "paused"  # queued: the person who paused its session
    COORDINATOR = "coordinator"  # the next step
    CALLS = "calls"
    PEOPLE = "people"  # parked
    OUTSIDE = "outside"  # parked
    CLIENT = "client"  # parked, for the runner of the client's tools
    FINALIZER = "finalizer"
    NOBODY = "nobody"


class Ending(StrEnum):
    """The four ways a turn ends. A limit that was used up ends as `completed` with a `stop_reason`."""

    COMPLETED = "completed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"


FINAL_TURN_STATES = frozenset({TurnState.COMPLETED, TurnState.TIMED_OUT, TurnState.CANCELLED, TurnState.FAILED})

TURN_MOVES: dict[TurnState, frozenset[TurnState]] = {
    TurnState.QUEUED: frozenset({TurnState.ACTIVE, TurnState.CLOSING}),
    TurnState.ACTIVE: frozenset({TurnState.PARKED, TurnState.CLOSING}),
    TurnState.PARKED: frozenset({TurnState.ACTIVE, TurnState.CLOSING}),
    TurnState.CLOSING: FINAL_TURN_STATES,
    TurnState.COMPLETED: frozenset(),
    TurnState.TIMED_OUT: frozenset(),
    TurnState.CANCELLED: frozenset(),
    TurnState.FAILED: frozenset(),
}


class StopReason(StrEnum):
    """The reason why the model loop stopped. Only `answered` is a whole answer of the model's own."""

    ANSWERED = "answered"
    EMPTY_REPLY = "empty_reply"
    LENGTH = "length"  # the model's last reply was cut off, and is kept up to there
    FILTERED = "filtered"  # a content filter stopped it, or the model refused
    INVALID_OUTPUT = "invalid_output"  # the answer does not fit the output schema, after all attempts
    MAX_STEPS = "max_steps"
    MAX_TOTAL_TOKENS = "max_total_tokens"
    MAX_COST = "max_cost"
    DEADLINE = "deadline"
    WAITED = "waited"  # it had not begun after `max_wait_s`; nothing was done, and nothing paid
    LIMITED = "limited"  # the limits of its model did not allow its next request within a day
    CANCELLED = "cancelled"
    MODEL_ERROR = "model_error"
    LOST = "lost"
    INTERNAL_ERROR = "internal_error"


REPLY_STOP_REASONS = frozenset(
    {StopReason.ANSWERED, StopReason.EMPTY_REPLY, StopReason.LENGTH, StopReason.FILTERED, StopReason.INVALID_OUTPUT}
)
"""The reasons of a turn whose last reply ended it. That reply counts as a step, too."""


class TraceStatus(StrEnum):
    """The status of one call.

    `planned` is an addition of brainq: the call is in a later wave of its step, and nothing has been requested for it
    yet.
    """

    PLANNED = "planned"
    WAITING = "waiting"  # queued for its lanes
    PARKED = "parked"  # waits for a person or an outside result
    DISPATCHED = "dispatched"  # in its effect's queue
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    TIMED_OUT_LATE = "timed_out_late"  # timed out, and its late end was recorded
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # a non-read call that started, with an unknown end

    @property
    def is_settled(self) -> bool:
        return self in SETTLED


SETTLED = frozenset(
    {
        TraceStatus.COMPLETED,
        TraceStatus.FAILED,
        TraceStatus.DENIED,
        TraceStatus.TIMED_OUT,
        TraceStatus.TIMED_OUT_LATE,
        TraceStatus.CANCELLED,
        TraceStatus.UNKNOWN,
    }
)

FAILED_CALLS = frozenset({TraceStatus.FAILED, TraceStatus.TIMED_OUT, TraceStatus.TIMED_OUT_LATE, TraceStatus.UNKNOWN})
"""Calls that went wrong. Denied and cancelled calls were not wanted."""

_STOPPED = frozenset({TraceStatus.DENIED, TraceStatus.TIMED_OUT, TraceStatus.CANCELLED})

TRACE_MOVES: dict[TraceStatus, frozenset[TraceStatus]] = {
    TraceStatus.PLANNED: _STOPPED | {TraceStatus.WAITING, TraceStatus.DISPATCHED, TraceStatus.PARKED},
    TraceStatus.PARKED: _STOPPED
    | {
        TraceStatus.WAITING,
        TraceStatus.DISPATCHED,
        TraceStatus.COMPLETED,
        TraceStatus.FAILED,
        TraceStatus.UNKNOWN,  # a write whose result was to come from outside
    },
    TraceStatus.WAITING: _STOPPED
    | {
        TraceStatus.DISPATCHED,
        TraceStatus.PARKED,
        TraceStatus.UNKNOWN,  # an attempt of it was lost, and the next one was held back or is no longer needed
    },
    TraceStatus.DISPATCHED: _STOPPED
    | {
        TraceStatus.RUNNING,
        TraceStatus.FAILED,
        TraceStatus.PARKED,
        TraceStatus.UNKNOWN,  # as for a waiting call
    },
    TraceStatus.RUNNING: frozenset(
        {
            TraceStatus.COMPLETED,
            TraceStatus.FAILED,
            TraceStatus.TIMED_OUT,
            TraceStatus.CANCELLED,
            TraceStatus.UNKNOWN,
            TraceStatus.DENIED,
            TraceStatus.PARKED,
            TraceStatus.DISPATCHED,  # a rescue: the next attempt
        }
    ),
    TraceStatus.TIMED_OUT: frozenset({TraceStatus.TIMED_OUT_LATE}),
    TraceStatus.COMPLETED: frozenset(),
    TraceStatus.FAILED: frozenset(),
    TraceStatus.DENIED: frozenset(),
    TraceStatus.TIMED_OUT_LATE: frozenset(),
    TraceStatus.CANCELLED: frozenset(),
    TraceStatus.UNKNOWN: frozenset(),
}


class WorkFailure(StrEnum):
    """Work that was done and recorded, and failed. Its task is shown as failed in monitoring."""

    CALL_FAILED = "call_failed"
    CALL_TIMED_OUT = "call_timed_out"
    CALL_UNKNOWN = "call_unknown"
    CALL_LOST = "call_lost"
    TURN_FAILED = "turn_failed"
    TURN_TIMED_OUT = "turn_timed_out"
    STEP_FAILED = "step_failed"
    JUDGE_FAILED = "judge_failed"
    SUBMIT_REJECTED = "submit_rejected"


class WorkOutcome(str):
    """The outcome of work, as a word for logs and tests. `failed` and `why` (a word, or the name of an error's class)
    describe a failure; they are None and "" without one."""

    failed: WorkFailure | None
    why: str

    def __new__(cls, word: str, failed: WorkFailure | None = None, why: str = "") -> Self:
        did = super().__new__(cls, word)
        did.failed = failed
        did.why = why
        return did


CALL_FAILURES = {
    TraceStatus.FAILED: WorkFailure.CALL_FAILED,
    TraceStatus.TIMED_OUT: WorkFailure.CALL_TIMED_OUT,
    TraceStatus.UNKNOWN: WorkFailure.CALL_UNKNOWN,
}

TURN_FAILURES = {Ending.FAILED: WorkFailure.TURN_FAILED, Ending.TIMED_OUT: WorkFailure.TURN_TIMED_OUT}
