"""Bodies of requests and answers: base classes, pages, files, and the body of a turn and its submission.

Values are not converted (a text is not a number), and unknown fields are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from brainq.app.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts import tool
from brainq.contracts.answers import cells_away
from brainq.contracts.cell import ROW_ID_PATTERN, RowId
from brainq.contracts.conversation import MAX_HISTORY_MESSAGES
from brainq.contracts.descriptions import TURN_OPTIONS
from brainq.contracts.file import MAX_FILES, MAX_NAME_CHARS, File
from brainq.contracts.ids import new_turn_id
from brainq.contracts.model_options import TurnOptions
from brainq.contracts.people import Receipt
from brainq.contracts.turn import MAX_MESSAGE_CHARS, MAX_TAGS, LimitsOverride, PromptTag, TurnChoices
from brainq.errors import Unreachable
from brainq.gateway.edge.request import ID, TURN_ID, Gateway, GatewayRequest, read_idempotency_key
from brainq.runtime.processes.resources import is_shortage

MAX_PAGE = 1_000
"""A page is encoded as a whole on the event loop: 1,000 items of 2 kB take a few milliseconds."""
DEFAULT_PAGE = 200
DEFAULT_LIST_PAGE = 50
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
MAX_NUMBER = 2**53 - 1
"""The highest number of an event or a message. JavaScript cannot represent larger ones exactly."""
AFTER = "`next` of the previous page."
AfterRow = Annotated[str | None, Query(pattern=ROW_ID_PATTERN, description=AFTER)]
AfterTurn = Annotated[str | None, Query(pattern=TURN_ID, description=AFTER)]
RowInPath = Annotated[str, Path(pattern=ROW_ID_PATTERN)]
NEXT = Field(description="Give it as `after` to get the following page; null on the last page.")
NextRow = Annotated[RowId | None, NEXT]
NextName = Annotated[str | None, NEXT]
INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types that a browser shows in place; it saves others. SVG is not one of them, because it may contain scripts."""
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="A repeated key is the same turn. Quotes around it are ignored."),
]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def described(descriptions: Mapping[str, str]) -> Callable[[type[M]], type[M]]:
    """Decorate a model: its fields without a description get the one of their name."""

    def describe(model: type[M]) -> type[M]:
        for name, field in model.model_fields.items():
            field.description = field.description or descriptions.get(name)
        model.model_rebuild(force=True)
        return model

    return describe


class Answer(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(frozen=True)


class ListPage(Answer):
    """A page of a list."""

    cells_away: tuple[str, ...] = Field(
        default=(), description="The cells that did not answer, so their items are missing."
    )


def page_end(found: Sequence[T], limit: int, key: Callable[[T], int | str]) -> dict[str, Any]:
    """Return the last fields of a ListPage of at most `limit` items. `key` returns the `next` after an item."""
    return {"next": key(found[-1]) if len(found) == limit else None, "cells_away": cells_away(found)}


class ChangeAnswer(Answer):
    """The outcome of an act. `changed` is false if nothing had to change."""

    changed: bool


class AffectedTurn(Answer):
    """The turn that became live or was cancelled; null if there was none."""

    turn_id: str | None


class FileBody(Body):
    """An image or another file, as base64 or as a `data:` URL. A missing `media_type` is detected."""

    data: str = Field(min_length=1)
    media_type: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=MAX_NAME_CHARS)


def file_response(file: File) -> Response:
    """Return the file for a browser, in a sandbox, so that it cannot run scripts on the gateway's origin."""
    kind = "inline" if file.media_type in INLINE_TYPES else "attachment"
    name = quote(file.name or file.attachment.sha256[:12], safe="")
    headers = {
        "Content-Disposition": f"{kind}; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        # The bytes of a hash never change, but the turn may lose them.
        "Cache-Control": "private, max-age=300",
    }
    return Response(file.data, headers=headers, media_type=file.media_type)


class TurnLimits(LimitsOverride):
    """Limits of one turn that differ from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class OptionsBody(TurnOptions):
    """Options of one turn's model calls that differ from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class HistoryCall(Body):
    """A call that the assistant made. Its `id` is unique in its message."""

    id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, JsonValue]


class HistoryMessage(Body):
    """A message of an earlier conversation. The assistant has `calls`; a `tool` message names one by `call_id`."""

    role: Literal["user", "assistant", "tool"]
    content: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    calls: list[HistoryCall] = []
    call_id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    is_error: bool = False
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ClientToolBody(Body):
    """A tool that the caller runs itself. `parameters` is the JSON schema of its arguments, which are an object."""

    name: str = Field(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    description: str = Field(default="", max_length=tool.MAX_DESCRIPTION_CHARS)
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    timeout_s: float = Field(
        default=tool.DEFAULT_CLIENT_TOOL_TIMEOUT_S, gt=0, le=tool.MAX_CLIENT_TOOL_TIMEOUT_S, allow_inf_nan=False
    )


@described(TURN_OPTIONS)
class TurnBody(TurnChoices):
    """A turn's message and options."""

    model_config = ConfigDict(strict=True)

    user_message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    limits: TurnLimits | None = None
    options: OptionsBody | None = None
    prompt_tags: list[PromptTag] = Field(default=[], max_length=MAX_TAGS)
    history: list[HistoryMessage] = Field(default=[], max_length=MAX_HISTORY_MESSAGES)
    client_tools: list[ClientToolBody] = Field(default=[], max_length=tool.MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)

    def set_fields(self) -> list[str]:
        """Return the names of the fields that were sent and are not null."""
        return [name for name in sorted(self.model_fields_set) if getattr(self, name) is not None]


@described(TURN_OPTIONS)
class SubmitBody(TurnBody):
    """A user message to a session, and the options of its turn."""

    session_id: str = Field(pattern=ID)
    readiness: bool | None = None
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class SubmitAnswer(Answer):
    """An accepted turn."""

    turn_id: str
    session_id: str
    created: bool = Field(description="False if this `Idempotency-Key` was sent before; the turn is that request's.")
    receipt: Receipt | None = Field(
        default=None, description="Set if `on_busy` put the message into this, an earlier turn."
    )


def require_may_submit(request: GatewayRequest, session_id: str, body: TurnBody) -> None:
    """Raise SessionNotAllowed for a session that is not the caller's, RequestRejected for an option it may not use."""
    request.require_own_prefix(session_id)
    request.require_options(body.set_fields())
    if body.on_busy not in ("enqueue", "reject"):
        request.require_verb(Verb.STEER)


async def submit_turn(gateway: Gateway, body: SubmitBody, request_key: str) -> AsyncTurnHandle:
    """Submit the turn under this key. Raises what `Client.submit` raises."""
    options = submit_options(body)
    options["request_key"] = request_key
    return await gateway.client.submit(body.session_id, body.user_message, **options)


def submit_options(body: TurnBody) -> SubmitOptions:
    """Return the body's options as arguments of `Client.submit`."""
    options: Any = {name: getattr(body, name) for name in body.set_fields() if name in SubmitOptions.__annotations__}
    if body.limits is not None:
        options["limits"] = body.limits.model_dump(exclude_unset=True)
    if body.options is not None:
        options["options"] = body.options.explicit()
    for name in ("attachments", "history", "client_tools"):
        if name in options:
            options[name] = [item.model_dump(exclude_unset=True) for item in options[name]]
    return options


@contextmanager
def submit_key(request: GatewayRequest, session_id: str, idempotency_key: str | None) -> Generator[str]:
    """Yield the request key to submit under.

    Raises Unreachable, with the key for a retry, if the outcome is unknown or this process is short of resources.
    Raises InvalidInput for a key that brainq could have made.
    """
    key = new_turn_id() if idempotency_key is None else read_idempotency_key(idempotency_key)
    try:
        yield own_request_key(request.caller, session_id, key)
    except Exception as error:
        if not (isinstance(error, Unreachable) or is_shortage(error)):
            raise
        raise Unreachable(str(error), request_key=key) from error
