"""A step of the finalizer, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from brainq.contracts.claim import StepClaim
from brainq.contracts.message import Message
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.parts import FinalParts
from brainq.ports.child_turns import ChildTurns
from brainq.ports.finals import Finals
from brainq.ports.records import Records


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given: the ended turn, read when first asked for, and the ports."""

    claim: StepClaim
    read_turn: Callable[[], EndedTurn]
    chain: Finals
    records: Records
    brain: Any
    parts: FinalParts | None = None
    parents: ChildTurns | None = None

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
