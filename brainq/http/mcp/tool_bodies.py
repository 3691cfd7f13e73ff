"""What the tools of turns take, and what they give where no contract says it already."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from brainq.client.checks import MAX_COMMENT_CHARS, MAX_REASON_CHARS
from brainq.contracts.event import TurnEvent
from brainq.contracts.turn import MAX_EXTRA_CHARS, MAX_MESSAGE_CHARS
from brainq.http.bodies.base import Answer, Body
from brainq.http.bodies.submit import OptionsBody, TurnLimits
from brainq.http.gateway import CALL_ID, ID, TURN_ID
from brainq.http.paging import LISTED

MOST_EVENTS = 200
Wait = Field(default=0, ge=0, allow_inf_nan=False, description="How many seconds to wait.")


class OfTurn(Body):
    turn_id: str = Field(pattern=TURN_ID)


class SubmitInput(Body):
    """What is left out is as the agent has it."""

    message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    session: str | None = Field(
        default=None, pattern=ID, description="The conversation; left out: a new one."
    )
    brain: str | None = Field(default=None, pattern=ID, description="Which agent; left out: the default one.")
    on_busy: Literal["enqueue", "reject"] = Field(
        default="enqueue", description="Where the session has a turn that runs: wait behind it, or refuse."
    )
    metadata: dict[str, JsonValue] | None = None
    output_schema: dict[str, Any] | None = Field(
        default=None, description="A JSON schema that the answer has to fit."
    )
    model: str | None = None
    provider: str | None = None
    system_prompt: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    skill_context: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    cwd: str | None = Field(default=None, max_length=4096)
    limits: TurnLimits | None = None
    options: OptionsBody | None = None


class ResultInput(OfTurn):
    wait_s: float = Wait


class WatchInput(OfTurn):
    after: int = Field(default=0, ge=0, description="Begin behind this event: `next` of the last answer.")
    wait_s: float = Wait
    limit: int = Field(default=MOST_EVENTS, ge=1, le=1_000)


class SteerInput(OfTurn):
    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="The agent reads it next.")
    client_message_id: str | None = Field(
        default=None, pattern=ID, description="The same id again is the same input."
    )


class CancelInput(OfTurn):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class ApproveInput(Body):
    approval_id: str = Field(pattern=CALL_ID)
    args_hash: str | None = Field(
        default=None, max_length=200, description="As it was shown: refused if the arguments are others now."
    )
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="Run it with these arguments in place of the agent's."
    )


class DenyInput(Body):
    approval_id: str = Field(pattern=CALL_ID)
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS, description="The agent reads it.")


class ListInput(Body):
    session: str | None = Field(default=None, pattern=ID)
    brain: str | None = Field(default=None, pattern=ID)
    state: Literal["accepted", "ended"] | None = Field(
        default=None, description="`accepted`: those that have not ended."
    )
    text: str = Field(default="", max_length=128, description="In the turn's id, or its session's.")
    limit: int = Field(default=LISTED, ge=1, le=1_000)
    after: str | None = Field(default=None, pattern=TURN_ID, description="`next` of the page at hand.")


class ApprovalsInput(Body):
    session: str | None = Field(default=None, pattern=ID)
    limit: int = Field(default=LISTED, ge=1, le=1_000)


class Watched(Answer):
    """Events of a turn, in order. `next`: give it as `after`. `is_over`: no more will come."""

    turn_id: str
    session: str
    events: tuple[TurnEvent, ...]
    next: int
    is_over: bool
