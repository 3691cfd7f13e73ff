"""Chat events: what a turn's events mean to a chat. Each wire encodes them in its own format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.turn import TurnResult


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The model is asked."""

    step: int


@dataclass(frozen=True, slots=True)
class StepReset:
    """The step is attempted again: its text so far is replaced."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    text: str
    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextEnded:
    """The reply's text is complete; its calls follow. The tokens are those of the step."""

    input_tokens: int
    output_tokens: int


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
    """The reply requests a call. Of `call` only its id, tool and arguments are final."""

    call: TurnCall


@dataclass(frozen=True, slots=True)
class ClientCallRequested:
    """A call of the client's own tool, which the client is to run now. `id` is unique over all turns; `arguments` is
    JSON text."""

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call needs an approval. `id` is the call's and the approval's, unique over all turns."""

    id: str
    tool: str
    reason: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """`arguments`: those that a person put in place of the model's; None: they are the model's."""

    id: str
    tool: str
    decision: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: TurnCall


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event without a meaning of its own in chats."""

    event: TurnEvent


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The final one.

    rest     the part of the answer that was not sent yet
    is_new   the rest is a text of its own, and does not continue the last one
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
