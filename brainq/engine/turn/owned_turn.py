"""A turn in the hands of its owner, and what an advance of it can come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.view import TurnView
from brainq.engine.turn.decide import End
from brainq.runtime.outage import OutageRetry


@dataclass(frozen=True, slots=True)
class OwnedTurn:
    """A turn that one owner advances.

    claim     the claim that fences every write
    view      the turn as it was when it was claimed
    is_lost   returns whether the turn has another owner, as far as the last heartbeat has shown
    retry     calls a function that needs Redis or SQL, and calls it again while they are unavailable
    """

    claim: TurnClaim
    view: TurnView
    is_lost: Callable[[], bool]
    retry: OutageRetry


@dataclass(frozen=True, slots=True)
class Lost:
    """The turn has another owner, or this process released it for a worker that can continue it."""

    word = "lost"


@dataclass(frozen=True, slots=True)
class Waits:
    """The turn keeps its place in the queue of what it waits for, such as a rate limit, a stop or a budget."""

    why: str

    @property
    def word(self) -> str:
        return f"waits for {self.why}"


@dataclass(frozen=True, slots=True)
class Did:
    """The advance is done. `word` names its result in logs."""

    word: str


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """The turn makes no more steps, and is to be ended.

    message   the model's answer; None if there is none
    spend     what the answer used
    lost      requests that broke off; None if nobody knows what became of one that was sent
    """

    end: End
    message: Message | None = None
    spend: Spend | None = None
    tail: str = ""
    lost: tuple[Spend, ...] | None = None


LOST = Lost()
Outcome = Lost | Waits | Did
StepOutcome = Outcome | LoopEnd


def did_or_lost(is_ours: bool, word: str) -> Did | Lost:
    """Return `Did(word)`, or `LOST` if a script found that the turn has another owner."""
    return Did(word) if is_ours else LOST
