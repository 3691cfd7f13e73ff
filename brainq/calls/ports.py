"""What running a call needs of the world. `wiring/` fits Redis, SQL and the brain in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, Unpack

from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.claim import CallClaim, CallDropped, CallRef, SettleReply
from brainq.contracts.intent import Intent
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.snapshot import BudgetSnapshot
from brainq.contracts.status import TraceStatus


class Calls(Protocol):
    """Call state in Redis; every write is fenced by owner and attempt.

    start      the last look before the function of a call that changes something: `OK`, `CLOSED` or `LOST`
    settle     with it the call leaves its lanes, unless its function `still_runs`: then with the one that says it ended
    park       `PARKED`, `SETTLED` (the outside result was there before), `LATE` or `LOST`
    give_token   notes that the call gives a token away: that one, or the one an earlier attempt gave. Returns it
    """

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | CallDropped: ...
    def start(self, claim: CallClaim) -> str: ...
    def beat(self, claim: CallClaim) -> str: ...
    def give_token(self, claim: CallClaim, token: str) -> str: ...
    def settle(
        self,
        claim: CallClaim,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        latency_ms: int,
        retryable: bool = False,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        notice: Message | None = None,
        changes: Sequence[Mapping[str, str]] = (),
        still_runs: bool = False,
    ) -> SettleReply: ...
    def park(
        self,
        claim: CallClaim,
        *,
        park: Literal["outside", "child"],
        token: str,
        timeout_s: float,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        changes: Sequence[Mapping[str, str]] = (),
    ) -> SettleReply: ...


class Lanes(Protocol):
    """Lanes: lines of calls, one holder each. `beat` keeps those of a function that was abandoned."""

    def beat(self, ref: CallRef) -> str: ...


class Intents(Protocol):
    """Intents of non-read calls in SQL: a row before the call starts, its outcome when it ended.

    start_unless_braked   `start`, but False also while SQL says that a brake stands on the turn
    """

    def start(self, **intent: Unpack[Intent]) -> bool: ...
    def start_unless_braked(self, **intent: Unpack[Intent]) -> bool: ...
    def record_outcome(
        self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool
    ) -> bool: ...


class Budgets(Protocol):
    def snapshot(self, session_id: str, turn_id: str) -> BudgetSnapshot: ...


class Stops(Protocol):
    """Who is told, and how soon, that a turn was cancelled. `callback` gets the reason, at most once a message."""

    def watch(
        self, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> AbstractContextManager[object]: ...


class Holds(Protocol):
    def is_ready(self, session_id: str, turn_id: str) -> bool: ...


class Brakes(Protocol):
    """What SQL says keeps turns from changing anything.

    restore   put back what Redis has lost of a turn's brakes; how many that were, cancels always among them
    """

    def restore(self, session_id: str, turn_id: str) -> int: ...


class Outside(Protocol):
    """Tokens of the tools' own making.

    register   that `token` stands for `ref`, for `keep_s` at least. True also if it does already; False if another
               call has it
    """

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool: ...


class Children(Protocol):
    """Turns that calls start.

    start   (`STARTED`, child turn id) or (`REFUSED`, why). The same call again is the same child
    stop    the call could not park, because its turn no longer wants it: nor does anybody want the child
    """

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]: ...
    def stop(self, claim: CallClaim, child_turn_id: str) -> object: ...
