"""Bodies of routes about turns: a turn's status, its records, pages of turns, and retries of finalizer steps."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from brainq.client.options import Cancelled
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.history import ListedTurn, StartedTurn, TurnCall
from brainq.contracts.message import Message
from brainq.contracts.turn import ParentCall, TurnKind
from brainq.contracts.view import TurnSnapshot
from brainq.gateway.rest.bodies import Answer, Body


class TurnStatus(Answer):
    """A turn's state.

    state      `queued active parked closing`, an ending, `rejected`, or `accepted` where only SQL knows it yet
    snapshot   what Redis holds of it; null once an ended turn has expired there
    """

    turn_id: str
    session_id: str
    state: str
    snapshot: TurnSnapshot | None = None


class TurnExplanation(Answer):
    """What happens next to a turn, and why, in one sentence."""

    turn_id: str
    session_id: str
    next: str


class TurnDecision(Answer):
    """How a turn came to its answer; null until its finalizer has written it."""

    turn_id: str
    session_id: str
    decision: RuntimeDecisionRecord | None


class SubmittedRequest(Answer):
    """What was submitted.

    user_message   empty where content is not stored
    attachments    how many files came with it
    parent         the call that started it; null also where that is a call of another caller's session
    """

    turn_id: str
    session_id: str
    user_message: str
    kind: TurnKind
    brain: str | None
    model: str | None
    metadata: dict[str, JsonValue] | None
    prompt_tags: tuple[str, ...]
    attachments: int
    parent: ParentCall | None


class ChildTurns(Answer):
    """The turns that calls of this one started, in the order of these calls."""

    turn_id: str
    session_id: str
    children: tuple[StartedTurn, ...]


class TranscriptPage(Answer):
    """A page of a turn's messages, in order."""

    turn_id: str
    session_id: str
    messages: tuple[Message, ...]


class CallPage(Answer):
    """A page of a turn's calls, in the model's order."""

    turn_id: str
    session_id: str
    calls: tuple[TurnCall, ...]


class TurnPage(Answer):
    """Turns, the newest first. `next`, given as `before`, is the page behind this one; null: this is the last."""

    turns: tuple[ListedTurn, ...]
    next: str | None


class CancelAnswer(Answer):
    """`cancelled`: it had not begun; `requested`: it is asked to stop; `ended`: there was nothing to cancel."""

    cancelled: Cancelled


class RetryBody(Body):
    """A step, `judge:NAME`, `judges`; empty: all that is dead."""

    step: str = Field(default="", max_length=300)


class StepRetry(Answer):
    """`taken`: a worker has it at this moment."""

    step: str
    outcome: Literal["done", "failed", "taken"]
    error: str


class RetryAnswer(Answer):
    turn_id: str
    steps: tuple[StepRetry, ...]
