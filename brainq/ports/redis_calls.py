"""Calls in Redis, as the machines use them: their state, lanes, approvals, holds, input, stops, and results
from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from brainq.contracts.call import CallReport, Progress, ServerTask, ServerTaskWatch, ToolOutcome, ToolTraceEntry
from brainq.contracts.claim import CallClaim, CallFacts, CallRef, NoCallClaim, SettleReply
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import (
    ApprovalStatus,
    Brake,
    DecideResult,
    EditedCall,
    HoldSpec,
    StandingHold,
)
from brainq.contracts.status import Effect, TraceStatus
from brainq.contracts.view import BudgetSnapshot


class Calls(Protocol):
    """Call state, and the lanes that calls hold; every write of a runner is fenced by owner and attempt. Fitted by
    `state.calls.RedisCalls`.

    start      the last look before the function of a call that changes something: `OK`, `CLOSED` or `LOST`
    let_lapse  ends the lease of one that was not started, so that it is judged at once
    settle     with it the call leaves its lanes, unless its function `still_runs`: then with the one that says it ended
    park       `PARKED`, `SETTLED` (the outside result was there before), `LATE` or `LOST`
    publish_progress   publishes how far it is; `number` counts what this attempt has published
    give_token   notes that the call gives a token away: that one, or the one an earlier attempt gave. Returns it
    fence_unstarted   whether an attempt whose worker is gone surely never started; from now on it cannot. `owner` wrote
               its intent
    facts      (status, tool, effect, attempt, idempotent, step, client_arguments), or None when Redis no longer
               knows the call
    beat_lanes    keeps those of a function that was abandoned
    lapsed_lanes  the holders whose lease lapsed, and the mark to `check_lanes` them with
    check_lanes   leaves them, unless their call is queued or runs
    """

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | NoCallClaim: ...
    def start(self, claim: CallClaim) -> str: ...
    def beat(self, claim: CallClaim) -> Literal["OK", "CLOSED", "LOST"]: ...
    def let_lapse(self, claim: CallClaim) -> None: ...
    def publish_progress(self, claim: CallClaim, number: int, progress: Progress) -> None: ...
    def budget(self, claim: CallClaim) -> BudgetSnapshot: ...
    def give_token(self, claim: CallClaim, token: str) -> str: ...
    def settle(self, claim: CallClaim, report: CallReport, *, still_runs: bool = ...) -> SettleReply: ...
    def park(
        self,
        claim: CallClaim,
        *,
        park: Literal["outside", "child"],
        token: str,
        timeout_s: float,
        sources: Sequence[Mapping[str, str]] = ...,
        block_tool: bool = ...,
        changes: Sequence[Mapping[str, str]] = ...,
    ) -> SettleReply: ...
    def rung_again_ms(self, ref: CallRef) -> int | None: ...
    def facts(self, ref: CallRef) -> CallFacts | None: ...
    def traceparent(self, ref: CallRef) -> str | None: ...
    def arguments(self, ref: CallRef) -> dict[str, Any]: ...
    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]: ...
    def fence_unstarted(self, ref: CallRef, attempt: int, owner: str) -> bool: ...
    def dispatch_again(self, ref: CallRef, attempt: int) -> Literal["AGAIN", "ALIVE", "GONE"]: ...
    def give_up(
        self,
        ref: CallRef,
        attempt: int,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool = ...,
        outcome: ToolOutcome | None = ...,
    ) -> SettleReply: ...
    def expire(self, session_id: str, turn_id: str) -> tuple[Literal["EXPIRED", "CANCEL", "NONE"], str]: ...
    def beat_lanes(self, ref: CallRef) -> Literal["OK", "LOST"]: ...
    def lapsed_lanes(self, limit: int) -> tuple[str, list[CallRef]]: ...
    def check_lanes(self, ref: CallRef, mark: str) -> str: ...


class OutsideResults(Protocol):
    """Calls that wait for a result from outside, or for a task of a server, which one process at a time watches. Fitted
    by `state.outside.RedisOutsideResults`.

    register   that a token of a tool's own names `ref`, for `keep_s` at least. True also if it does already;
               False if another call has it
    find       the call of such a token
    complete   `SETTLED`, `EARLY` (the tool has not returned yet), `LATE` (nobody waits any more), `USED`, `BAD`, `GONE`
    put_task      before the call parks, so that no kill leaves a parked call for whose task nobody asks
    beat_task     `OK`; `BEGINS` while the call has not parked yet; `OVER` when it waits no more
    lapsed_tasks  those nobody beats for, of these brains and effects
    take_task     True for one of those who ask for a lapsed one
    leave_tasks   have another process take them at once
    publish_task_progress   publishes how far it is; the same words again are published once
    """

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool: ...
    def find(self, token: str) -> CallRef | None: ...
    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = ...,
        retryable: bool = ...,
        notice: Message | None = ...,
        spend: Spend | None = ...,
        outcome: ToolOutcome | None = ...,
    ) -> SettleReply: ...
    def put_task(self, claim: CallClaim, task: ServerTask, token: str) -> ServerTaskWatch: ...
    def beat_task(self, task: ServerTaskWatch) -> Literal["OK", "BEGINS", "OVER"]: ...
    def lapsed_tasks(self, places: Collection[tuple[str, Effect]], limit: int) -> Sequence[ServerTaskWatch]: ...
    def take_task(self, task: ServerTaskWatch) -> bool: ...
    def leave_tasks(self, tasks: Sequence[ServerTaskWatch]) -> None: ...
    def drop_task(self, task: ServerTaskWatch) -> None: ...
    def publish_task_progress(self, task: ServerTaskWatch, message: str) -> None: ...


class Holds(Protocol):
    """What keeps calls that change something from starting. Redis is the truth of it while the turn lives. Fitted by
    `state.people.RedisHolds`.

    place_all         in place of a word what kept that one from being placed
    decide_approval   (word, detail): `APPROVED`, `DENIED`, `EXPIRED`; `DECIDED` with its state; `STALE`: the arguments
                      are other ones; `ENDED` with the turn's state; `GONE`
    approvals         None where Redis does not know the call, or it needs no approval
    """

    def place(self, session_id: str, turn_id: str, hold: HoldSpec) -> Literal["HELD", "ALREADY", "ENDED", "GONE"]: ...
    def place_all(self, brakes: Sequence[Brake]) -> Sequence[str | Exception]: ...
    def release(self, session_id: str, turn_id: str, hold_id: str) -> Literal["RELEASED", "ABSENT", "GONE"]: ...
    def of_turn(self, session_id: str, turn_id: str) -> Sequence[StandingHold]: ...
    def is_ready(self, session_id: str, turn_id: str) -> bool: ...
    def add_flag(self, session_id: str, flag: HoldSpec) -> Literal["ADDED", "ALREADY", "FULL"]: ...
    def release_flag(self, session_id: str, flag_id: str) -> tuple[Literal["READY", "TAKEN", "GONE"], str]: ...
    def decide_approval(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: Literal["approved", "denied"],
        by: str,
        why: str,
        edited: EditedCall | None = ...,
    ) -> tuple[DecideResult, str]: ...
    def approvals(self, refs: Sequence[CallRef]) -> Sequence[ApprovalStatus | None]: ...


class StopSignals(Protocol):
    """Tells at once that a turn is to stop. Fitted by `state.listener.RedisStopSignals`.

    watch   `callback` gets the reason, at most once a message
    """

    def watch(
        self, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> AbstractContextManager[object]: ...
