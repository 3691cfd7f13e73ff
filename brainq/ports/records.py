"""The finalizer's rows in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.claim import StepClaim
from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.message import Message
from brainq.contracts.turn import TurnResult
from brainq.contracts.usage import Spend
from brainq.contracts.view import TurnDetails


class Records(Protocol):
    """Fitted by `store.records.SqlRecords`. Each `record_*` runs once: it commits with the step's own row."""

    def record_answer(
        self,
        claim: StepClaim,
        result: TurnResult,
        redact: bool,
        details: TurnDetails,
        user_message: str = ...,
        answer: str | None = ...,
    ) -> bool: ...
    def record_memories(
        self, claim: StepClaim, scope: str, items: Sequence[MemoryItem], spends: Sequence[Spend] = ...
    ) -> bool: ...
    def record_observations(
        self, claim: StepClaim, scope: str, source_event_id: str, items: Sequence[Observation]
    ) -> bool: ...
    def record_judges(
        self, claim: StepClaim, session_id: str, turn_id: str, names: Sequence[str]
    ) -> bool: ...
    def record_decision(self, claim: StepClaim, record: RuntimeDecisionRecord) -> bool: ...
    def source_event_id(self, turn_id: str) -> str: ...
    def transcript(self, turn_id: str) -> tuple[Message, ...]: ...
    def note_failure(self, claim: StepClaim, error: str, dead: bool) -> None: ...
    def note_done(self, claim: StepClaim) -> None: ...
