"""What upkeep may see and move. `wiring/` fits Redis, SQL and the machines in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from brainq.contracts.claim import CallRef, SettleReply
from brainq.contracts.effect import Effect
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.contracts.turn import TurnRequest, TurnResult


class Look(Protocol):
    """What one look at a turn found; see `state.index.Look`."""

    @property
    def word(self) -> str: ...
    @property
    def after_ms(self) -> int: ...
    @property
    def fence(self) -> int: ...
    @property
    def actions(self) -> tuple[tuple[str, ...], ...]: ...


class Due(Protocol):
    """Turns to be looked at; see `state.index.Due`."""

    @property
    def turns(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def mark(self) -> str: ...
    @property
    def stepped(self) -> int: ...


class Index(Protocol):
    def due(self, most: int, hold_s: float) -> Due: ...
    def look(self, session_id: str, turn_id: str) -> Look: ...
    def again(self, session_id: str, turn_id: str, mark: str, after_ms: int) -> None: ...
    def drop(self, session_id: str, turn_id: str) -> None: ...
    def known(self, turns: list[tuple[str, str]]) -> list[bool]: ...
    def take_comparing(self, for_s: float) -> bool: ...


class Calls(Protocol):
    def facts(self, ref: CallRef) -> tuple[str, str, Effect, int, bool, int] | None: ...
    def ask_again(self, ref: CallRef, attempt: int) -> str: ...
    def give_up(
        self,
        ref: CallRef,
        attempt: int,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool = False,
    ) -> SettleReply: ...


class Verdict(Protocol):
    """Whether a call ever started: `void` (it did not, and now cannot), `started` or `done`."""

    @property
    def state(self) -> str: ...
    @property
    def outcome_json(self) -> str | None: ...


class Intents(Protocol):
    def void(
        self,
        *,
        turn_id: str,
        call_id: str,
        attempt: int,
        session_id: str,
        tool: str,
        effect: Effect,
    ) -> Verdict: ...


class Lanes(Protocol):
    def beat(self, ref: CallRef) -> str: ...
    def lapsed(self, most: int) -> tuple[str, list[CallRef]]: ...


class LaneKeeper(Protocol):
    def enter(self, ref: CallRef) -> None: ...
    def reap(self, ref: CallRef, mark: str) -> None: ...
    def leave(self, ref: CallRef) -> None: ...


class Coordinator(Protocol):
    def advance(self, session_id: str, turn_id: str, fence: int) -> str: ...


class Watchers(Protocol):
    """Hears what ended in no worker's task, but by the sweeper; for those who watch tasks.

    turn    a turn was ended
    call    an attempt of a call was given up, or lost
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None: ...
    def call(self, ref: CallRef, attempt: int, tool: str, did: str) -> None: ...


class Opening(Protocol):
    """Lets a turn go on without what its opening wave has not brought."""

    def skip_opening(self, session_id: str, turn_id: str) -> str: ...


class ParkedCalls(Protocol):
    """Lets what a turn has waited for too long end; see `state.calls.RedisCalls.expire`."""

    def expire(self, session_id: str, turn_id: str) -> tuple[str, str]: ...


class Children(Protocol):
    """Stops child turns whose parent call no longer waits for them."""

    def check_parent(self, session_id: str, turn_id: str, parent: CallRef) -> bool: ...


class Inputs(Protocol):
    """Mid-turn input: finishes what a sender left half done."""

    def heal(self) -> int: ...


class Brakes(Protocol):
    """Holds, readiness flags and cancels: puts back what SQL says stands and Redis has lost."""

    def heal(self) -> int: ...


class Cancel(Protocol):
    def __call__(self, session_id: str, turn_id: str, reason: str) -> object: ...


class Finalizer(Protocol):
    def deliver(self, session_id: str, turn_id: str) -> str: ...


class Accepted(Protocol):
    """Turns that SQL has accepted and not seen end, in row order."""

    def unended(self, after_row: int, limit: int) -> Sequence[Any]: ...
    def request(self, turn_id: str) -> TurnRequest | None: ...
    def result(self, turn_id: str) -> TurnResult | None: ...


class Admission(Protocol):
    """Queues an accepted turn in Redis, or ends one that cannot be begun again."""

    def queue_again(self, request: TurnRequest) -> None: ...
