"""What deciding approvals and taking results from outside need of the world. `wiring/` fits Redis and SQL in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from brainq.contracts.approval import Approval, AskState, EditedCall
from brainq.contracts.claim import CallRef, SettleReply
from brainq.contracts.effect import Effect
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.status import TraceStatus
from brainq.contracts.turn import TurnRequest

Decided = Literal["approved", "denied", "expired", "void"]

Editor = Callable[[str, Mapping[str, Any], str, TurnRequest], EditedCall]
"""From (tool, a person's arguments, session id, the turn's request) to the call as it will run. Raises InvalidInput."""


class Placed(Protocol):
    """An approval, and its place among all."""

    @property
    def row(self) -> int: ...
    @property
    def approval(self) -> Approval: ...


class ApprovalRows(Protocol):
    """Approvals in SQL. `decided` is False, and nothing changed, unless the approval was pending there."""

    def get(self, turn_id: str, call_id: str) -> Approval | None: ...
    def of(self, turn_id: str) -> Sequence[Approval]: ...
    def decided_of_open_turns(self, limit: int) -> Sequence[Approval]: ...
    def list(
        self,
        session_id: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
    ) -> Sequence[Placed]: ...
    def decided(
        self,
        turn_id: str,
        call_id: str,
        state: Decided,
        by: str = "",
        comment: str = "",
        edited: bool = False,
        args_hash: str = "",
        args_json: str | None = None,
    ) -> bool: ...


class Asks(Protocol):
    """Approvals in Redis, which is the truth while their turn lives.

    decide   (word, detail, calls that now wait for their lanes); `APPROVED`, `DENIED`, `EXPIRED`; `DECIDED` with how
             it stands; `STALE`: the arguments are other ones; `ENDED` with the turn's state; `GONE`
    states   None where Redis does not know the call, or it needs no approval
    """

    def decide(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: str,
        by: str,
        why: str,
        edited: EditedCall | None = None,
    ) -> tuple[str, str, tuple[str, ...]]: ...
    def states(self, refs: Sequence[CallRef]) -> Sequence[AskState | None]: ...


class Requests(Protocol):
    def request(self, turn_id: str) -> TurnRequest | None: ...


class Keeper(Protocol):
    """Has calls that may go now take their lanes, or stand in line for them."""

    def enter_all(self, session_id: str, turn_id: str, call_ids: Iterable[str]) -> object: ...


class CallFacts(Protocol):
    """(status, tool, effect, attempt, idempotent, step) of a call, or None when Redis no longer knows it."""

    def facts(self, ref: CallRef) -> tuple[str, str, Effect, int, bool, int] | None: ...


class OutsideCalls(Protocol):
    """Calls that wait for a result from outside.

    find       the call of a token of a tool's own making
    complete   `SETTLED`, `EARLY` (the tool has not returned yet), `LATE` (nobody waits any more), `USED`, `BAD`, `GONE`
    """

    def find(self, token: str) -> CallRef | None: ...
    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = "",
        retryable: bool = False,
        notice: Message | None = None,
    ) -> SettleReply: ...


class Started(Protocol):
    """An attempt at a call that changes something. `args_json` is None where no content is kept."""

    @property
    def call_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def args_json(self) -> str | None: ...


class Outcomes(Protocol):
    """Intents of non-read calls in SQL, and how they ended."""

    def of(self, turn_id: str) -> Sequence[Started]: ...
    def record_outcome(
        self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool
    ) -> bool: ...
