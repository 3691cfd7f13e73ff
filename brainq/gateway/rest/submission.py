"""Submission of turns and schedules: their bodies, what they require of the caller, and the request key."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Header
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, JsonValue

from brainq.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.conversation import MAX_HISTORY_MESSAGES
from brainq.contracts.file import MAX_FILES
from brainq.contracts.ids import DERIVED_PREFIXES, MAX_ID_LENGTH, new_turn_id
from brainq.contracts.model_options import TurnOptions
from brainq.contracts.people import Receipt
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.contracts.tool import (
    DEFAULT_CLIENT_TOOL_TIMEOUT_S,
    MAX_CLIENT_TOOL_TIMEOUT_S,
    MAX_CLIENT_TOOLS,
    MAX_DESCRIPTION_CHARS,
)
from brainq.contracts.turn import (
    MAX_EXTRA_CHARS,
    MAX_MESSAGE_CHARS,
    MAX_TAGS,
    LimitsOverride,
    OnBusy,
    Priority,
    PromptTag,
    TurnKind,
)
from brainq.errors import InvalidInput, Unreachable
from brainq.gateway.edge.request import ID, Gateway, GatewayRequest
from brainq.gateway.rest.bodies import Answer, Body, FileBody


class TurnLimits(LimitsOverride):
    """Limits of one turn that differ from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class OptionsBody(TurnOptions):
    """How a turn's model is asked, where that differs from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class HistoryCall(Body):
    """A call that the assistant made. `id` is unique in its message."""

    id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, JsonValue]


class HistoryMessage(Body):
    """A message of an earlier conversation. `calls` are the assistant's; a `tool` message names one of them."""

    role: Literal["user", "assistant", "tool"]
    content: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    calls: list[HistoryCall] = []
    call_id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    is_error: bool = False
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ClientToolBody(Body):
    """A tool that the caller runs itself; `parameters` is the JSON schema, of an object, of its arguments."""

    name: str = Field(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    timeout_s: float = Field(
        default=DEFAULT_CLIENT_TOOL_TIMEOUT_S, gt=0, le=MAX_CLIENT_TOOL_TIMEOUT_S, allow_inf_nan=False
    )


class TurnBody(Body):
    """A turn's message and options; see `Client.submit`."""

    user_message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    model: str | None = None
    provider: str | None = None
    system_prompt: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    skill_context: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    output_schema: dict[str, Any] | None = None
    cwd: str | None = Field(default=None, max_length=4096)
    limits: TurnLimits | None = None
    options: OptionsBody | None = None
    show_citations: bool | None = None
    prompt_id: str | None = Field(default=None, max_length=200)
    prompt_version: str | None = Field(default=None, max_length=200)
    prompt_tags: list[PromptTag] = Field(default=[], max_length=MAX_TAGS)
    metadata: dict[str, JsonValue] | None = None
    on_busy: OnBusy = "enqueue"
    priority: Priority = "normal"
    kind: TurnKind = "chat"
    seed: Literal["session", "empty"] = "session"
    greeting: str | None = Field(default=None, min_length=1, max_length=MAX_MESSAGE_CHARS)
    history: list[HistoryMessage] = Field(default=[], max_length=MAX_HISTORY_MESSAGES)
    client_tools: list[ClientToolBody] = Field(default=[], max_length=MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)

    def set_fields(self) -> list[str]:
        """The names of the fields that were sent, and are not null."""
        return [name for name in sorted(self.model_fields_set) if getattr(self, name) is not None]


class SubmitBody(TurnBody):
    """One user message to one session, and the options of its turn."""

    session_id: str = Field(pattern=ID)
    readiness: bool | None = None
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class SubmitAnswer(Answer):
    """An accepted turn.

    created   False: this `Idempotency-Key` was sent before, and this is its turn
    receipt   where `on_busy` put the message into another turn, which is this one
    """

    turn_id: str
    session_id: str
    created: bool
    receipt: Receipt | None = None


SESSION_PATTERN = r"^([A-Za-z0-9]|\{date\}|\{time\})([A-Za-z0-9._:@+=-]|\{date\}|\{time\})*$"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_AT_REMEDY = "write a text such as 2031-01-05T09:00:00+01:00"


def _read_instant(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError(_AT_REMEDY)
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(_AT_REMEDY) from None
    if at.tzinfo is None:
        raise ValueError(f"it needs a time zone; {_AT_REMEDY}")
    return at


def _check_interval(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError("write a crontab, such as `*/5 9-17 * * mon-fri`, or a span in seconds")
    if not isinstance(value, str | None) and not value > 0:
        raise ValueError("a span in seconds is above 0")
    return value


class ScheduleBody(TurnBody):
    """Turns that begin at a time; give one of `when` and `at`.

    name         begins with its tenant's prefix, as its session does; the same name again sets the schedule anew
    session_id   {date} and {time} in it are those of each due instant in `zone`
    when         repeated: a crontab's five fields, such as `*/5 9-17 * * mon-fri`, or a span in seconds
    at           once
    """

    name: str = Field(pattern=ID)
    session_id: str = Field(pattern=SESSION_PATTERN, max_length=MAX_ID_LENGTH)
    when: Annotated[Annotated[str, Field(max_length=200)] | Seconds | None, BeforeValidator(_check_interval)] = None
    at: Annotated[AwareDatetime, BeforeValidator(_read_instant, json_schema_input_type=str)] | None = None
    zone: str = Field(default="UTC", max_length=100)
    on_running: OnRunning = "skip"
    missed: Missed = "once"


class ScheduleStatus(Answer):
    """A schedule that was set, paused or resumed. `next_at` null: it has no run any more."""

    name: str
    paused: bool
    next_at: datetime | None


class SchedulePage(Answer):
    """By name. `next`, given as `after`, is the page behind this one; null: this is the last."""

    schedules: tuple[Schedule, ...]
    next: str | None


def require_may_submit(request: GatewayRequest, body: SubmitBody | ScheduleBody) -> None:
    """Raise NotFound for a session of another caller, RequestRejected for options whose verb the caller lacks."""
    request.require_session(body.session_id)
    request.require_options(body.set_fields())
    if body.on_busy not in ("enqueue", "reject"):
        request.require_verb(Verb.STEER)


async def submit_turn(gateway: Gateway, body: SubmitBody, request_key: str) -> AsyncTurnHandle:
    """Submit the turn under this key. Raises as `Client.submit`."""
    options = submit_options(body)
    options["request_key"] = request_key
    return await gateway.client.submit(body.session_id, body.user_message, **options)


def submit_options(body: TurnBody) -> SubmitOptions:
    """The body's options as the client takes them."""
    options: Any = {name: getattr(body, name) for name in body.set_fields() if name in SubmitOptions.__annotations__}
    if body.limits is not None:
        options["limits"] = body.limits.model_dump(exclude_unset=True)
    if body.options is not None:
        options["options"] = body.options.explicit()
    for name in ("attachments", "history", "client_tools"):
        if name in options:
            options[name] = [item.model_dump(exclude_unset=True) for item in options[name]]
    return options


IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", pattern=ID, description="The same key again is the same turn.")
]


@contextmanager
def submit_key(request: GatewayRequest, session_id: str, idempotency_key: str | None) -> Generator[str]:
    """The request key to submit under. Where the outcome is unknown, Unreachable carries the caller's key for a retry.
    Raises InvalidInput for a key that brainq could have made."""
    if idempotency_key is not None and idempotency_key.startswith(DERIVED_PREFIXES):
        raise InvalidInput(
            "Idempotency-Key",
            f"it begins like the ids that brainq makes ({', '.join(DERIVED_PREFIXES)}); choose another",
        )
    key = idempotency_key or new_turn_id()
    try:
        yield own_request_key(request.caller, session_id, key)
    except Unreachable as error:
        raise Unreachable(str(error), request_key=key) from error
