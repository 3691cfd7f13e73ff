"""SQL, as the machines use it: one Protocol a repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Unpack

from brainq.contracts.call import Intent, ToolOutcome
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.conversation import EarlierTurn
from brainq.contracts.evaluation import Judgement, RuntimeDecisionRecord
from brainq.contracts.file import File
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.message import Attachment, Message
from brainq.contracts.model import Spend
from brainq.contracts.people import Approval, ApprovalRequest, ApprovalStatus, TurnInput
from brainq.contracts.rows import (
    AcceptedTurn,
    ApprovalRow,
    CallRow,
    InputRow,
    JudgementRow,
    UnendedTurn,
    VoidResult,
)
from brainq.contracts.schedule import ScheduleRow
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import TurnDetails
from brainq.contracts.webhook import DeliveryClaim

# Turns in SQL.


class TurnRows(Protocol):
    """What SQL has of turns. Fitted by `store.repositories.turns.Turns`.

    by_key    the turn of a request key
    unended   accepted and not seen end, in row order
    history   questions and answers of a session's last turns, oldest first
    """

    def accept(self, request: TurnRequest, as_sent: TurnRequest | None = None) -> AcceptedTurn: ...
    def refuse(self, turn_id: str, reason: str) -> bool: ...
    def request(self, turn_id: str) -> TurnRequest | None: ...
    def result(self, turn_id: str) -> TurnResult | None: ...
    def is_open(self, turn_id: str) -> bool: ...
    def by_key(self, request_key: str) -> str | None: ...
    def unended(self, after_row: int, limit: int) -> Sequence[UnendedTurn]: ...
    def history(self, session_id: str, before_turn_id: str, limit_turns: int) -> Sequence[EarlierTurn]: ...
    def number(self, turn_id: str) -> int: ...
    def first(self, session_id: str) -> TurnRequest | None: ...


# Intents of non-read calls in SQL, and how they ended.


class CallRows(Protocol):
    """A row before a call starts, its outcome when it ended. Fitted by `store.repositories.calls.Calls`.

    start_unless_braked   `start`, but False also while SQL has a brake in force on the turn
    void_unstarted        an intent whose attempt never started, and now never will, is void; False: it is none any more
    void                  succeeds only for an attempt that never started, and now never will
    """

    def start(self, **intent: Unpack[Intent]) -> bool: ...
    def start_unless_braked(self, **intent: Unpack[Intent]) -> bool: ...
    def void(
        self, *, turn_id: str, call_id: str, attempt: int, session_id: str, tool: str, effect: Effect
    ) -> VoidResult: ...
    def void_unstarted(self, turn_id: str, call_id: str, attempt: int) -> bool: ...
    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool: ...
    def of_turn(self, turn_id: str) -> Sequence[CallRow]: ...
    def has_intents(self, turn_id: str) -> bool: ...


# The bytes of attachments in SQL.


class Blobs(Protocol):
    """Bytes by session and hash. Fitted by `store.repositories.blobs.Blobs`.

    keep    writes files down for a turn, before anything refers to them, and tells which it did not have; again
            changes nothing
    take_back  takes some of its files from a turn again
    lend    lets another turn of the session have what one of its turns has
    drop    takes from a turn all that it has
    load    those of these hashes that the session has; the others are left out
    """

    def keep(self, session_id: str, turn_id: str, files: Sequence[File]) -> Sequence[str]: ...
    def take_back(self, turn_id: str, hashes: Sequence[str]) -> None: ...
    def lend(self, session_id: str, turn_id: str, given: Sequence[Attachment]) -> None: ...
    def drop(self, turn_id: str) -> None: ...
    def load(self, session_id: str, hashes: Iterable[str]) -> Mapping[str, bytes]: ...


# Approvals in SQL.


class ApprovalRows(Protocol):
    """Where people find what they are asked. Fitted by `store.repositories.approvals.Approvals`.

    ask       writes approvals down before their calls are committed
    decided   False, and nothing changed, unless the approval was pending there
    """

    def request(self, rows: Sequence[ApprovalRequest]) -> None: ...
    def get(self, turn_id: str, call_id: str) -> Approval | None: ...
    def of_turn(self, turn_id: str) -> Sequence[Approval]: ...
    def decided_of_open_turns(self, after_row: int, limit: int) -> Sequence[ApprovalRow]: ...
    def row_number(self, turn_id: str, call_id: str, sessions: Sequence[str] | None = ...) -> int | None: ...
    def list(
        self,
        session_id: str | None = ...,
        state: str | None = ...,
        limit: int = ...,
        before_row: int | None = ...,
        sessions: Sequence[str] | None = ...,
    ) -> Sequence[ApprovalRow]: ...
    def decided(self, turn_id: str, call_id: str, status: ApprovalStatus) -> bool: ...


# Mid-turn input in SQL.


class InputRows(Protocol):
    """What was sent into turns, and what became of it. Fitted by `store.repositories.inputs.Inputs`."""

    def accept(self, session_id: str, turn_id: str, item: TurnInput) -> InputRow: ...
    def get(self, session_id: str, client_message_id: str) -> InputRow | None: ...
    def of_turn(self, turn_id: str) -> Sequence[InputRow]: ...
    def open(self, after_row: int, limit: int, older_than_s: float) -> Sequence[InputRow]: ...
    def consumed(self, session_id: str, ids_to_steps: Mapping[str, int]) -> int: ...
    def bounced(self, session_id: str, client_message_id: str, turn_id: str, *, redact: bool = ...) -> bool: ...
    def refused(self, session_id: str, client_message_id: str, *, redact: bool = ...) -> bool: ...


# Schedules in SQL.


class ScheduleRows(Protocol):
    """Fitted by `store.repositories.schedules.Schedules`.

    due    those whose time has come, the one longest due first
    move   on from the due instant `was_ms`; False where somebody else did, or it was changed meanwhile
    """

    def due(self, now_ms: int, most: int) -> Sequence[ScheduleRow]: ...
    def move(
        self, schedule_id: str, was_ms: int, next_ms: int | None, *, turn_id: str = "", note: str = ""
    ) -> bool: ...


# The finalizer's rows in SQL.


class FinalizerRecords(Protocol):
    """Fitted by `store.records.SqlRecords`. Each `record_*` runs once: it commits with the step's own row."""

    def record_answer(
        self,
        claim: FinalStepClaim,
        result: TurnResult,
        redact: bool,
        details: TurnDetails,
        user_message: str = ...,
        answer: str | None = ...,
    ) -> bool: ...
    def record_memories(
        self, claim: FinalStepClaim, scope: str, items: Sequence[MemoryItem], spends: Sequence[Spend] = ...
    ) -> bool: ...
    def record_observations(
        self, claim: FinalStepClaim, scope: str, source_event_id: str, items: Sequence[Observation]
    ) -> bool: ...
    def record_judges(self, claim: FinalStepClaim, session_id: str, turn_id: str, names: Sequence[str]) -> bool: ...
    def record_decision(self, claim: FinalStepClaim, record: RuntimeDecisionRecord) -> bool: ...
    def source_event_id(self, turn_id: str) -> str: ...
    def transcript(self, turn_id: str) -> tuple[Message, ...]: ...
    def note_failure(self, claim: FinalStepClaim, error: str, dead: bool) -> None: ...
    def note_done(self, claim: FinalStepClaim) -> None: ...


# Judgements in SQL.


class JudgementRows(Protocol):
    """A table of jobs on the database's own clock. Fitted by `store.repositories.judgements.Judgements`.

    claim    the number of this try, from 1, and nobody else gets the row for `lease_s`; None when it is settled,
             dead, held, not due yet, or was never planned
    beat     hold it for another `lease_s`; False when it is no longer ours
    settle   keep the judgement, and what its models used; nothing changes if the row is settled
    fail     try again after `again_after_s`, or never (`dead`); `tries` is the number `claim` gave, and nothing
             changes if the row is settled, or a later try has it
    revive   a dead row is pending again, with no tries behind it; False if it is not dead
    due      (session, turn, judge) of those that nobody holds and that have been due for a while
    """

    def claim(self, turn_id: str, judge: str, lease_s: float) -> int | None: ...
    def beat(self, turn_id: str, judge: str, tries: int, lease_s: float) -> bool: ...
    def settle(self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ...) -> bool: ...
    def fail(self, turn_id: str, judge: str, error: str, again_after_s: float, dead: bool, tries: int) -> bool: ...
    def revive(self, turn_id: str, judge: str) -> bool: ...
    def due(self, older_than_s: float, limit: int) -> Sequence[tuple[str, str, str]]: ...
    def of_turn(self, turn_id: str) -> Sequence[JudgementRow]: ...


# Deliveries to webhooks in SQL.


class DeliveryRows(Protocol):
    """A table of jobs on the database's own clock. Fitted by `store.repositories.deliveries.Deliveries`.

    claim   what is due for this url, for nobody else for `lease_s`; None when nothing is
    done    it was taken
    fail    try again after `again_after_s`, or never (`dead`); `tries` is the number `claim` gave, and nothing
            changes if the row is settled, or a later try has it
    """

    def claim(self, url: str, lease_s: float) -> DeliveryClaim | None: ...
    def done(self, row: int) -> bool: ...
    def fail(self, row: int, tries: int, error: str, again_after_s: float, dead: bool) -> bool: ...
