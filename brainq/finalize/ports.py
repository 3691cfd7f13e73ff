"""What the finalizer needs of the world. `wiring/` fits Redis, SQL and the brain in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from brainq.contracts.claim import StepClaim, StepDropped
from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.message import Message
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.parts import FinalParts


class Chain(Protocol):
    """The chain in Redis; every move is fenced. See `state.finals.RedisFinals`."""

    def claim(self, session_id: str, turn_id: str, step: str, owner: str) -> StepClaim | StepDropped: ...
    def beat(self, claim: StepClaim) -> str: ...
    def go_on(
        self, claim: StepClaim, next_step: str, *, stay: bool
    ) -> StepClaim | Literal["NEXT", "LOST"]: ...
    def finish(self, claim: StepClaim) -> str: ...
    def retry(self, claim: StepClaim, after_s: float, error: str) -> str: ...
    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None: ...
    def set_text(self, session_id: str, turn_id: str, text: str) -> None: ...
    def published(self, session_id: str, turn_id: str) -> TurnResult | None: ...
    def publish(self, result: TurnResult) -> str: ...
    def details(self, session_id: str, turn_id: str) -> TurnDetails: ...
    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> str: ...


class Records(Protocol):
    """The finalizer's rows in SQL. Each `record_*` runs once: it commits with the step's own row."""

    def record_answer(
        self,
        claim: StepClaim,
        result: TurnResult,
        redact: bool,
        details: TurnDetails,
        user_message: str = "",
        answer: str | None = None,
    ) -> bool: ...
    def record_memories(self, claim: StepClaim, scope: str, items: Sequence[MemoryItem]) -> bool: ...
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


class StepEvents(Protocol):
    """Told of each step that a visit goes on with: no doorbell says that it runs. See `tasks.events`."""

    def step_began(self, claim: StepClaim) -> None: ...
    def step_ended(self, claim: StepClaim, did: str, took_s: float) -> None: ...


class Parents(Protocol):
    """Brings a child turn's result to the call that waits for it."""

    def deliver(self, request: TurnRequest, result: TurnResult) -> str: ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given: the ended turn, read when first asked for, and the ports."""

    claim: StepClaim
    read_turn: Callable[[], EndedTurn]
    chain: Chain
    records: Records
    brain: Any
    parts: FinalParts | None = None
    parents: Parents | None = None

    @property
    def turn(self) -> EndedTurn:
        return self.read_turn()

    def conversation(self) -> tuple[Message, ...]:
        """The turn's messages: from SQL once they are logged, else from Redis."""
        return self.records.transcript(self.claim.turn_id) or self.details().messages

    def details(self) -> TurnDetails:
        return self.chain.details(self.claim.session_id, self.claim.turn_id)


class FinalStep(Protocol):
    """One finalizer step. Its `run` may run again after a crash and must then do no harm."""

    name: str

    def is_configured(self, brain: Any) -> bool: ...
    def run(self, context: StepContext) -> None: ...
