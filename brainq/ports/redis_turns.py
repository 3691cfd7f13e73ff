"""Turns in Redis, as the machines use them: state, steps, budgets, finalizer's chain. Beside them what the sweeper
asks, and models' rate limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from pydantic import JsonValue

from brainq.contracts.budgets import MoneyHold, MoneyRefusal
from brainq.contracts.call import DueHook
from brainq.contracts.claim import (
    CallsOverBudget,
    CancelResult,
    FinalStepClaim,
    NoFinalStepClaim,
    NoTurnClaim,
    PlannedCall,
    StepAttempt,
    StepOverBudget,
    StepStart,
    TurnClaim,
    TurnCleanup,
    TurnStart,
)
from brainq.contracts.event import EventKind
from brainq.contracts.fleet import DueTurns, GoneProcess, SweepResult, TurnKey
from brainq.contracts.limit_share import ShareReport
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRetry, Spend
from brainq.contracts.people import PutResult, RestoredState, SubmitWord, TurnInput
from brainq.contracts.rate import QueueTicket, RateReport, RateWait, TokenCount
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import Limits, TurnRequest, TurnResult
from brainq.contracts.view import BudgetSnapshot, EndedTurn, TurnDetails, TurnView


class Turns(Protocol):
    """Turn state; every write of an owner is fenced. See `state.turns.RedisTurns` for what each returns."""

    def submit(
        self,
        request: TurnRequest,
        limits: Limits,
        *,
        lost_reason: str = ...,
        children: int = ...,
        kept: RestoredState = ...,
        stop_fields: Sequence[str] = ...,
    ) -> tuple[SubmitWord, str, tuple[str, ...]]: ...
    def cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool = ...) -> CancelResult: ...
    def claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, max_lost: int = ...
    ) -> TurnClaim | NoTurnClaim: ...
    def pinned_to(self, session_id: str, turn_id: str) -> str: ...
    def end_wait(self, session_id: str, turn_id: str, text: str) -> bool: ...
    def release(self, claim: TurnClaim) -> Literal["RELEASED", "CLEARED", "GONE"]: ...
    def wait_for_permit(
        self,
        claim: TurnClaim,
        ring_s: float,
        wait_s: float,
        why: str,
        ticket: QueueTicket | None,
        lost: Sequence[Spend] = ...,
        stop: str = ...,
    ) -> Literal["WAITS", "LOST"]: ...
    def beat(self, claim: TurnClaim) -> Literal["OK", "CANCEL", "LOST"]: ...
    def mark(self, claim: TurnClaim) -> str: ...
    def look(self, claim: TurnClaim) -> TurnView: ...
    def parked_calls(self, claim: TurnClaim, step: int) -> tuple[tuple[str, int], ...]: ...
    def due_hooks(self, claim: TurnClaim, calls: Sequence[str]) -> Sequence[DueHook]: ...
    def hooks_done(self, claim: TurnClaim, calls: Sequence[str]) -> Literal["DONE", "LOST"]: ...
    def begin(self, claim: TurnClaim, start: TurnStart) -> bool: ...
    def begin_step(
        self, claim: TurnClaim, step: StepStart, mark: str, under_way: Sequence[Spend] = ...
    ) -> StepAttempt | StepOverBudget | MoneyRefusal | Literal["LOST"]: ...
    def park_for_budget(
        self, claim: TurnClaim, line: str, name: str, until_ms: int, lost: Sequence[Spend] | None
    ) -> Literal["PARKED", "LOST"]: ...
    def publish_delta(
        self, claim: TurnClaim, step: int, attempt: int, text: str, mark: str = ..., kind: EventKind = ...
    ) -> bool: ...
    def publish_retry(self, claim: TurnClaim, step: int, attempt: int, retry: ModelRetry) -> bool: ...
    def commit_calls(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str] = ...,
        problem: str = ...,
        notes: Sequence[Message] = ...,
        lost: Sequence[Spend] = ...,
    ) -> CallsOverBudget | Literal["COMMITTED", "LOST"]: ...
    def end(
        self,
        claim: TurnClaim,
        *,
        ending: Ending,
        stop_reason: StopReason,
        text: str,
        error: str,
        answer: Message | None,
        marker: Message | None,
        outcome: Message | None,
        open_status: TraceStatus,
        open_text: str,
        first_step: str,
        spend: Spend | None,
        tail: str,
        last: str = ...,
        diff: str = ...,
        n_changes: int = ...,
        lost: Sequence[Spend] | None = ...,
    ) -> TurnCleanup | Literal["MORE", "CHANGED", "LOST"]: ...
    def claim_budget(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]: ...
    def budget(self, session_id: str, turn_id: str) -> BudgetSnapshot: ...
    def text_so_far(self, claim: TurnClaim) -> str: ...
    def changes(self, claim: TurnClaim) -> Sequence[Mapping[str, str | None]]: ...
    def open_wave(
        self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float
    ) -> Literal["OPENED", "ALREADY", "LOST"]: ...
    def skip_opening(self, session_id: str, turn_id: str) -> Literal["SKIPPED", "ALREADY", "EARLY"]: ...
    def begin_auxiliary(
        self,
        claim: TurnClaim,
        kind: Literal["reflection", "compaction"],
        mark: str,
        tokens: int,
        usd: float | None,
        under_way: Sequence[Spend] = ...,
        money: MoneyHold | None = ...,
    ) -> MoneyRefusal | Literal["GO", "DONE", "SPENT", "LOST"]: ...
    def commit_note(
        self, claim: TurnClaim, kind: str, note: Message | None, spend: Spend | None, data: Mapping[str, JsonValue]
    ) -> bool: ...
    def compact(
        self,
        claim: TurnClaim,
        *,
        expect: int,
        drop: int,
        front: Sequence[Message],
        spend: Spend | None,
        data: Mapping[str, JsonValue],
        mark: str,
        forget: Sequence[str],
        why: str = ...,
    ) -> Literal["COMPACTED", "CHANGED", "LOST"]: ...


class Sessions(Protocol):
    """Which turn of a session is live ("" for none), which wait, and input for the one that runs. Fitted by
    `state.people.RedisSessions`, which says what each word means.

    waiting_counts   how many turns of the session wait, and how many sessions of its tenant wait for room
    """

    def live(self, session_id: str) -> str: ...
    def waiting(self, session_id: str) -> Sequence[str]: ...
    def waiting_counts(self, session_id: str) -> tuple[int, int]: ...
    def put_input(self, session_id: str, turn_id: str, item: TurnInput) -> tuple[PutResult, str, str]: ...
    def input_receipt(self, session_id: str, turn_id: str, client_message_id: str) -> str | None: ...


class FinalChain(Protocol):
    """The chain of an ended turn; every move is fenced. Fitted by `state.finals.RedisFinalChain`."""

    def claim(
        self, session_id: str, turn_id: str, step: str, owner: str, *, and_look: bool = ..., and_messages: bool = ...
    ) -> FinalStepClaim | NoFinalStepClaim: ...
    def look(self, claim: FinalStepClaim) -> EndedTurn | None: ...
    def beat(self, claim: FinalStepClaim) -> Literal["OK", "LOST"]: ...
    def go_on(
        self, claim: FinalStepClaim, next_step: str, *, stay: bool
    ) -> FinalStepClaim | Literal["NEXT", "LOST"]: ...
    def send(
        self, claim: FinalStepClaim, next_step: str, result: TurnResult, *, stay: bool
    ) -> FinalStepClaim | Literal["NEXT", "LOST"]: ...
    def go_ahead(
        self,
        claim: FinalStepClaim,
        ahead: str,
        past: str,
        *,
        stay: bool,
        after_s: float | None = ...,
        error: str = ...,
        uncounted: bool = ...,
    ) -> FinalStepClaim | Literal["NEXT", "WAIT", "LOST"]: ...
    def finish(self, claim: FinalStepClaim) -> Literal["FINISHED", "LOST"]: ...
    def retry(self, claim: FinalStepClaim, after_s: float, error: str) -> Literal["WAIT", "LOST"]: ...
    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None: ...
    def warn_later(self, session_id: str, turn_id: str, warning: str, *, applies: bool) -> None: ...
    def set_text(self, session_id: str, turn_id: str, text: str) -> None: ...
    def published(self, session_id: str, turn_id: str) -> TurnResult | None: ...
    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]: ...
    def details(self, session_id: str, turn_id: str) -> TurnDetails: ...
    def details_of(self, claim: FinalStepClaim) -> TurnDetails: ...
    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]: ...


class SweeperState(Protocol):
    """When each turn is looked at, and what a look finds; which processes are gone; how many turns may be live. Fitted
    by `state.sweeper.RedisSweeperState`.

    look          and say when each is looked at next; what cannot be looked at is due again when its hold is over
    drop          a turn that Redis does not know is looked at no more
    standing      of each turn: `unknown` to Redis, `unlisted` (nobody would ever look at it), or `known`
    epoch         another one when Redis may have lost data
    lapse_gone    end the leases of processes found gone. One process of the fleet a second finds any
    set_capacity  say how many turns may be live, and how many of one tenant; put right what is not, and admit turns
                  that wait. `own`: the shares of tenants that have one of their own. `caps`: how many of a brain, where
                  it has a cap: it lasts until nobody has reported it for a while. Returns how many are live
    """

    def due(self, limit: int, hold_s: float) -> DueTurns: ...
    def look(self, turns: Sequence[TurnKey]) -> Sequence[SweepResult | Exception]: ...
    def drop(self, turn: TurnKey) -> None: ...
    def standing(self, turns: Sequence[TurnKey]) -> Sequence[str]: ...
    def list_again(self, turns: Iterable[TurnKey]) -> None: ...
    def take_comparing(self, for_s: float) -> bool: ...
    def epoch(self) -> str: ...
    def lapse_gone(self) -> Sequence[GoneProcess]: ...
    def set_capacity(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int: ...


class CellShares(Protocol):
    """This cell's shares of limits that several cells have. Fitted by `state.rates.RedisRates`."""

    def share_reports(self) -> Sequence[ShareReport]: ...
    def put_share(self, report: ShareReport, share: int) -> bool: ...


class RateLimits(Protocol):
    """Places among the requests of a minute. Fitted by `state.rates.RedisRates`.

    `name` is a model at one account: `provider:model`, and ` #` with a word for the account where there is one.
    """

    @property
    def any_limited(self) -> bool:
        """Whether anything limits any model, as far as this process knows."""
        ...

    def is_limited(self, name: str) -> bool:
        """Whether anything limits it, as far as this process knows. Asks nobody."""
        ...

    def take(
        self, name: str, place: str, ticket: str, tokens: int, max_wait_s: float, rank: int = ..., estimated: int = ...
    ) -> RateWait | None:
        """Take a place: None, or how long `ticket` waits in line for it. With the same `place` it is taken once.
        Whoever waits asks again when its time has come, and may get a later one: tenants take turns in the line.
        A ticket, and a place, begin with their tenant's session. Of a tenant's the lower `rank`, 0 to 9, goes first.
        Those of the `tokens` that are `estimated` count as the service has counted others."""
        ...

    def leave(self, ticket: QueueTicket) -> None:
        """Whose ticket it is wants no place any more."""
        ...

    def settle(
        self, name: str, place: str, used: int | TokenCount | None, answered_s: float | None, report: RateReport
    ) -> bool:
        """What came of it: tokens that were used, how long ago the answer began, and its word on limits. Whether
        the fleet keeps to that."""
        ...

    def report(self, name: str, place: str, count: TokenCount, is_all: bool) -> None:
        """What an open stream has reported: `count.used` tokens with what its reply may yet have. `is_all`: no more
        than that can come."""
        ...
