"""A turn in the hands of its owner, and the possible outcomes of an advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.view import TurnView
from brainq.engine.turn.decide import End
from brainq.engine.visit import Visit
from brainq.runtime.outage import OutageRetry


@dataclass(frozen=True, slots=True)
class OwnedTurn:
    """A turn together with what its owner needs to advance it.

    claim     the claim that fences every write
    view      the turn as it was when it was claimed
    is_lost   returns whether the turn has another owner, according to the latest heartbeat
    retry     calls a function that needs Redis or SQL, again while they are unavailable
    visit     what its thread continues with, or None if it continues with nothing
    """

    claim: TurnClaim
    view: TurnView
    is_lost: Callable[[], bool]
    retry: OutageRetry
    visit: Visit | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The outcome of an advance whose turn has another owner, or was released for a worker that can continue it."""

    word = "lost"


@dataclass(frozen=True, slots=True)
class Waits:
    """The outcome of an advance whose turn waits in a queue, such as that of a rate limit, a stop or a budget."""

    why: str

    @property
    def word(self) -> str:
        return f"waits for {self.why}"


@dataclass(frozen=True, slots=True)
class Did:
    """The outcome of an advance that did its work. `word` names the work in logs."""

    word: str


@dataclass(frozen=True, slots=True)
class LoopEnd:
    """The outcome of a turn that makes no more steps and has to be ended.

    end       the ending
    message   the model's answer; None if there is none
    spend     what the answer used
    tail      the end of the answer's text, which is not published yet
    lost      what requests that broke off have used; None if it is unknown what became of a request
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
    """Return `Did(word)` if the turn is still ours, or `LOST` if a script found that it has another owner."""
    return Did(word) if is_ours else LOST
