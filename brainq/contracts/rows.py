"""Rows that the repositories accept and return. Times are timezone-aware UTC, by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import TypeAdapter

from brainq.contracts.call import ToolOutcome
from brainq.contracts.cell import RowId
from brainq.contracts.evaluation import JudgeMethod
from brainq.contracts.memory import MemoryKind, ObservationKind
from brainq.contracts.message import Attachment
from brainq.contracts.people import Approval, Receipt, ReceiptState, TurnInput
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.contracts.turn import TurnRequest, TurnResult

CallState = Literal["intent", "void", "done"]
StepState = Literal["done", "failed", "dead"]
JudgementState = Literal["pending", "done", "dead"]
_OUTCOMES: TypeAdapter[ToolOutcome] = TypeAdapter(ToolOutcome)
TokenState = Literal["live", "expired", "revoked"]


def read_outcome(outcome_json: str) -> ToolOutcome:
    """Read a stored outcome, without the fields that a newer build has added."""
    return _OUTCOMES.validate_json(outcome_json, extra="ignore")


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """The turn of a submit, or the turn that it joined. `created` is False if the request key was sent before.

    ended: whether that turn has its ending. It must not be queued again, even if Redis has forgotten it.
    receipt: set if it is input of that turn, or was meant to be.
    """

    turn_id: str
    session_id: str
    created: bool
    ended: bool = False
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn without its request and result. `state` is `accepted`, `rejected` or the ending."""

    row: int
    turn_id: str
    request_key: str
    session_id: str
    state: str
    reject_reason: str | None
    turn_number: int | None
    ending: Ending | None
    stop_reason: StopReason | None
    error: str | None
    accepted_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecentTurn:
    """The times, the ending and the cost of a turn."""

    state: str
    accepted_at: datetime
    ended_at: datetime | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn with its request, and its result once that is written."""

    row: TurnRow
    request: TurnRequest
    result: TurnResult | None


@dataclass(frozen=True, slots=True)
class UnendedTurn:
    """An accepted turn whose result is not written yet."""

    row: int
    turn_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class CallRow:
    """An intent, a void, or the end of a started call. `late` means that it ended after the turn had given it up."""

    row: int
    turn_id: str
    call_id: str
    attempt: int
    session_id: str
    tool: str
    effect: Effect
    state: CallState
    args_hash: str
    args_json: str | None
    idempotency_key: str
    owner: str
    outcome_kind: str | None
    outcome_json: str | None
    late: bool
    started_at: datetime
    ended_at: datetime | None

    @property
    def outcome(self) -> ToolOutcome | None:
        return None if self.outcome_json is None else read_outcome(self.outcome_json)


StartedWord = Literal["no", "unsaid", "yes"]
"""Whether non-read calls of a turn have started. `unsaid`: some intents have no recorded outcome."""


@dataclass(frozen=True, slots=True)
class VoidResult:
    """The answer to a rescue that tries to void an attempt.

    state: `void` if the attempt never started and never will; `started` if its intent was written by `owner`, and its
        outcome is unknown; `done` if it ended, with `outcome_json`.
    """

    state: Literal["void", "started", "done"]
    outcome_json: str | None = None
    owner: str = ""

    @property
    def outcome(self) -> ToolOutcome | None:
        return None if self.outcome_json is None else read_outcome(self.outcome_json)


@dataclass(frozen=True, slots=True)
class StepRow:
    """A finalizer step's own row. `failed` is retried; `dead` is not."""

    turn_id: str
    step: str
    state: StepState
    tries: int
    error: str | None
    step_key: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeRow:
    """A fact that is known about a scope.

    row: its id; see `RowId`.
    session_id, turn_id: where it was first seen.
    updated_at: when it was last seen.
    """

    row: RowId
    scope: str
    kind: str
    text: str
    times_seen: int
    session_id: str
    turn_id: str
    last_turn_id: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow(KnowledgeRow):
    """A memory, as `client.memories` lists it."""

    kind: MemoryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationRow(KnowledgeRow):
    """One observation. `source_event_id` is the user's message that it was first learned from."""

    kind: ObservationKind
    source_event_id: str


@dataclass(frozen=True, slots=True)
class JudgementRow:
    """A judgement, scored or pending. Until `due_at` a try is running, or the judgement waits for its next try."""

    turn_id: str
    judge: str
    session_id: str
    state: JudgementState
    tries: int
    due_at: datetime
    score: float | None
    reason: str | None
    method: JudgeMethod | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    error: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class InputRow:
    """One mid-turn input. `turn_id` is the turn that it was sent to first, and `settled_at` is when it was settled.

    With `redact_logs` its text is empty once it is settled, and it has no attachments.

    is_unreadable: whether it is encrypted under a missing key. It then has no text and no attachments, and waits.
    """

    row: int
    session_id: str
    client_message_id: str
    turn_id: str
    text: str
    readiness: bool | None
    merged: bool
    content_hash: str
    state: ReceiptState
    step: int | None
    bounced_turn_id: str | None
    accepted_at: datetime
    settled_at: datetime | None
    attachments: tuple[Attachment, ...] = ()
    is_unreadable: bool = False

    @property
    def item(self) -> TurnInput:
        return TurnInput(
            client_message_id=self.client_message_id,
            text=self.text,
            readiness=self.readiness,
            merged=self.merged,
            attachments=self.attachments,
        )

    @property
    def receipt(self) -> Receipt:
        return Receipt(
            client_message_id=self.client_message_id,
            session_id=self.session_id,
            turn_id=self.turn_id,
            state=self.state,
            step=self.step,
            bounced_turn_id=self.bounced_turn_id,
        )


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """An approval and its row.

    is_unreadable: whether it is encrypted under a missing key. It then has no texts.
    """

    row: int
    approval: Approval
    is_unreadable: bool = False


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token. Times are timezone-aware UTC, by the database's clock.

    sessions: prefixes, or ("*",).
    verbs: as they were given. A word that this version of brainq does not know allows nothing.
    expires_at: None means never.
    last_used_at: rounded to the minute, or None before its first use.
    read_at: when the row was read.
    """

    token_id: str
    name: str
    sessions: tuple[str, ...]
    verbs: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    read_at: datetime
    secret_hash: str = field(repr=False)

    @property
    def remaining_s(self) -> float | None:
        """The seconds until it expires, from `read_at`, or None if it does not expire."""
        return None if self.expires_at is None else (self.expires_at - self.read_at).total_seconds()

    @property
    def idle_s(self) -> float | None:
        """The seconds since its last recorded use, at `read_at`, or None if it was never used."""
        return None if self.last_used_at is None else (self.read_at - self.last_used_at).total_seconds()

    @property
    def state(self) -> TokenState:
        """Its state at `read_at`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.remaining_s is not None and self.remaining_s <= 0 else "live"
