"""What the finalizer needs of the world. `wiring.py` fits Redis, SQL and the brain in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from brainq.contracts.claim import StepClaim
from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import EndedTurn


class Chain(Protocol):
    """The chain in Redis; every move is fenced. See `state.finals.RedisFinals`."""

    def claim(self, session_id: str, turn_id: str, step: str, owner: str) -> StepClaim | str: ...
    def beat(self, claim: StepClaim) -> str: ...
    def go_on(self, claim: StepClaim, next_step: str) -> str: ...
    def retry(self, claim: StepClaim, after_s: float, error: str) -> str: ...
    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None: ...
    def set_text(self, session_id: str, turn_id: str, text: str) -> None: ...
    def published(self, session_id: str, turn_id: str) -> TurnResult | None: ...
    def publish(self, result: TurnResult) -> str: ...


class Records(Protocol):
    """The finalizer's rows in SQL. Each `record_*` runs once: it commits with the step's own row."""

    def record_answer(self, claim: StepClaim, result: TurnResult, redact: bool) -> bool: ...
    def record_decision(self, claim: StepClaim, record: RuntimeDecisionRecord) -> bool: ...
    def note_failure(self, claim: StepClaim, error: str, dead: bool) -> None: ...
    def note_done(self, claim: StepClaim) -> None: ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given: the ended turn, read when first asked for, and the ports."""

    claim: StepClaim
    read_turn: Callable[[], EndedTurn]
    chain: Chain
    records: Records
    brain: Any

    @property
    def turn(self) -> EndedTurn:
        return self.read_turn()


class Step(Protocol):
    """One finalizer step. Its `run` may run again after a crash and must then do no harm."""

    name: str

    def is_configured(self, brain: Any) -> bool: ...
    def run(self, context: StepContext) -> None: ...
