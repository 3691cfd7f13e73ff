"""A step of the finalizer, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from brainq.brain import Brain
from brainq.contracts.claim import StepClaim
from brainq.contracts.message import Message
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.parts import FinalParts
from brainq.ports.child_turns import ChildTurns
from brainq.ports.finals import Finals
from brainq.ports.records import Records


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given: the ended turn, read when first asked for, and the ports.

    outgoing   takes the result that goes out with the script that ends the step; None: it goes out at once
    """

    claim: StepClaim
    read_turn: Callable[[], EndedTurn]
    chain: Finals
    records: Records
    brain: Brain
    parts: FinalParts | None = None
    parents: ChildTurns | None = None
    outgoing: list[TurnResult] | None = None

    @property
    def turn(self) -> EndedTurn:
        return self.read_turn()

    def conversation(self) -> tuple[Message, ...]:
        """The turn's messages: from SQL once they are logged, else from Redis."""
        return self.records.transcript(self.claim.turn_id) or self.details().messages

    def details(self) -> TurnDetails:
        return self.chain.details_of(self.claim)

    def send(self, result: TurnResult) -> None:
        """Let the result go out, once the step has done its part at the latest."""
        if self.outgoing is None:
            self.chain.publish(result)
        else:
            self.outgoing.append(result)


class FinalStep(Protocol):
    """One finalizer step. Its `run` may run again after a crash and must then do no harm.

    It may say what it needs (`needs`, names of steps before it; behind the result always that). While one of them is to
    be tried again it waits; no other step that fails holds it up. It may say how long it may take (`limit_s`, None: it
    bounds itself), and that it reads what the turn said (`reads_said`), which is then read on the way.
    """

    name: str

    def is_configured(self, brain: Brain) -> bool: ...
    def run(self, context: StepContext) -> None: ...
