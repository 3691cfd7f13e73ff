"""Chat events: what a turn's events mean to a chat. Each wire encodes them in its own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.turn import TurnResult


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The model is asked."""

    step: int


@dataclass(frozen=True, slots=True)
class StepReset:
    """The step is attempted again: what was said in it so far is replaced."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    text: str
    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextEnded:
    """The reply's text is whole; its calls follow."""


@dataclass(frozen=True, slots=True)
class ReasoningStarted:
    """The model thinks. `id` is of this span of its reasoning, unique in the turn."""

    id: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """`text`: the whole span."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallRequested:
    """The reply asks for a call. Of `call` only what never changes is told: its id, tool and arguments."""

    call: TurnCall


@dataclass(frozen=True, slots=True)
class ClientCallRequested:
    """A call of the client's own tool: the client is to run it now, and to give its result."""

    id: str
    tool: str
    arguments: JsonValue


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call needs an approval. `id` is the call's and the approval's, unique over all turns."""

    id: str
    tool: str
    reason: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """`arguments`: those that a person put in place of the model's; None: nobody did."""

    id: str
    tool: str
    decision: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: TurnCall


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event that chats have no word for."""

    event: TurnEvent


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The final one.

    rest     what of the answer was not told yet
    is_new   the rest does not go on where the text stopped: it is a text of its own
    """

    result: TurnResult
    rest: str
    is_new: bool


ChatEvent = (
    StepStarted
    | StepReset
    | TextAdded
    | TextEnded
    | ReasoningStarted
    | ReasoningAdded
    | ReasoningEnded
    | CallRequested
    | ClientCallRequested
    | ApprovalRequested
    | ApprovalResolved
    | CallEnded
    | OtherEvent
    | TurnEnded
)
