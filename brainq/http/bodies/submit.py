"""What a submit sends, over HTTP and MCP, and what it is answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from brainq.contracts.brought import MAX_BROUGHT
from brainq.contracts.client_tool import (
    DEFAULT_CLIENT_S,
    MAX_CLIENT_S,
    MAX_CLIENT_TOOLS,
    MAX_DESCRIPTION_CHARS,
)
from brainq.contracts.file import MAX_FILES
from brainq.contracts.mailbox import Receipt
from brainq.contracts.options import TurnOptions
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
from brainq.http.bodies.base import Answer, Body
from brainq.http.bodies.files import FileBody
from brainq.http.gateway import ID


class TurnLimits(LimitsOverride):
    """Limits of one turn that differ from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class OptionsBody(TurnOptions):
    """How a turn's model is asked, where that differs from the brain's."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class BroughtCall(Body):
    """A call that the assistant made. `id` tells it from the others of its message."""

    id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, JsonValue]


class BroughtMessage(Body):
    """A message of a conversation that was had elsewhere. `calls` are the assistant's; a `tool` message names one."""

    role: Literal["user", "assistant", "tool"]
    content: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    calls: list[BroughtCall] = []
    call_id: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=200)
    is_error: bool = False
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ClientToolBody(Body):
    """A tool that the caller runs itself; `parameters` is the JSON schema, of an object, of its arguments."""

    name: str = Field(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    timeout_s: float = Field(default=DEFAULT_CLIENT_S, gt=0, le=MAX_CLIENT_S, allow_inf_nan=False)


class TurnBody(Body):
    """What a turn is asked, and how it differs from others; see `Client.submit`."""

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
    history: list[BroughtMessage] = Field(default=[], max_length=MAX_BROUGHT)
    client_tools: list[ClientToolBody] = Field(default=[], max_length=MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)

    def given(self) -> list[str]:
        """The fields that say something; null says nothing."""
        return [name for name in sorted(self.model_fields_set) if getattr(self, name) is not None]


class SubmitBody(TurnBody):
    """One user message to one session, and how its turn differs from others."""

    session_id: str = Field(pattern=ID)
    readiness: bool | None = None
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class Submitted(Answer):
    """An accepted turn.

    created   False: this `Idempotency-Key` was sent before, and this is the first turn
    receipt   where `on_busy` put the message into another turn, which this then is
    """

    turn_id: str
    session_id: str
    created: bool
    receipt: Receipt | None = None
