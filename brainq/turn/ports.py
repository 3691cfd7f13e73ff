"""What the coordinator needs of the world. `wiring/` fits Redis, SQL and the brain in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from pydantic import JsonValue

from brainq.contracts.approval import AskedCall
from brainq.contracts.claim import PlannedCall, StepBegun, StepSpent, TurnClaim, TurnDropped, TurnEnded
from brainq.contracts.hold import HoldSpec
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import Spend, TokenUsage
from brainq.contracts.view import TurnView


class Turns(Protocol):
    """Turn state; every write is fenced. See `state.turns.RedisTurns` for what each returns."""

    def claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, most_lost: int = ...
    ) -> TurnClaim | TurnDropped: ...
    def release(self, claim: TurnClaim) -> str: ...
    def beat(self, claim: TurnClaim) -> str: ...
    def mark(self, claim: TurnClaim) -> str: ...
    def look(self, claim: TurnClaim) -> TurnView: ...
    def begin(
        self, claim: TurnClaim, messages: Sequence[Message], prompt_hash: str, earlier: int = 0
    ) -> bool: ...
    def begin_step(
        self,
        claim: TurnClaim,
        estimate_tokens: int,
        tokens: int,
        estimate_usd: float | None,
        shown: Sequence[str] = (),
        drain: int = 0,
        inputs: Sequence[Message] = (),
        readiness: HoldSpec | str = "",
        mark: str = "",
        full: int = 0,
    ) -> StepBegun | StepSpent | Literal["LOST"]: ...
    def tell_delta(self, claim: TurnClaim, step: int, attempt: int, text: str, mark: str = "") -> bool: ...
    def tell_retry(self, claim: TurnClaim, step: int, attempt: int, kind: str, wait_s: float) -> bool: ...
    def commit_calls(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str] = (),
        problem: str = "",
        notes: Sequence[Message] = (),
    ) -> bool: ...
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
        last: str = "",
        diff: str = "",
        n_changes: int = 0,
    ) -> TurnEnded | Literal["MORE", "CHANGED", "LOST"]: ...
    def said_so_far(self, claim: TurnClaim) -> str: ...
    def changes(self, claim: TurnClaim) -> Sequence[Mapping[str, str | None]]: ...


class Alone(Protocol):
    """Advances a turn in a process where nothing else runs; see `wiring.alone.AloneProcesses`."""

    def advance(self, session_id: str, turn_id: str, fence: int) -> str: ...


class Asides(Protocol):
    """What happens beside the steps; every write is fenced. See `state.asides.RedisAsides`."""

    def open(self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float) -> str: ...
    def begin(
        self,
        claim: TurnClaim,
        kind: Literal["reflection", "compaction"],
        mark: str,
        tokens: int,
        usd: float | None,
    ) -> str: ...
    def commit_note(
        self,
        claim: TurnClaim,
        kind: str,
        note: Message | None,
        spend: Spend | None,
        data: Mapping[str, JsonValue],
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
    ) -> str: ...


class Archive(Protocol):
    """Where messages go before a compaction drops them."""

    def archive(self, session_id: str, turn_id: str, messages: Sequence[Message], redact: bool) -> None: ...


class ToolCallBudget(Protocol):
    """Claims of tool calls: one word an id, in order."""

    def claim(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]: ...


class EventLog(Protocol):
    """The SQL event log, as far as the start of a turn needs it."""

    def log_user(self, request: TurnRequest, redact: bool) -> int: ...


class Remembered(Protocol):
    """What SQL kept of a session whose history Redis has let go."""

    def history(
        self, session_id: str, before_turn_id: str, limit_turns: int
    ) -> Sequence[tuple[str, str]]: ...
    def number(self, turn_id: str) -> int: ...
    def greeting(self, session_id: str) -> str: ...


class Approvals(Protocol):
    """Where an approval is written down before its call is committed: people find it there."""

    def ask(self, rows: Sequence[AskedCall]) -> None: ...


class Brakes(Protocol):
    """What SQL has of readiness flags, which outlive Redis' data.

    taken   the turn took a flag of its session when it became live
    lift    a newer word on its readiness takes the place of that flag
    """

    def taken(self, session_id: str, flag_id: str, turn_id: str) -> None: ...
    def lift(self, session_id: str, turn_id: str) -> None: ...


class Leftovers(Protocol):
    """What becomes of what a turn leaves behind when it ends."""

    def bounce(self, session_id: str, turn_id: str, inputs: Sequence[str]) -> None: ...
    def cancel_children(self, turn_ids: Sequence[str]) -> None: ...


class Stops(Protocol):
    """Tells at once that a turn is to stop."""

    def watch(
        self, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> AbstractContextManager[object]: ...


Price = Callable[[str, str, TokenUsage], float | None]
