"""A turn: its limits, its request and its result."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Annotated, Any, Literal, Self, TypedDict, TypeVar, cast

from pydantic import AfterValidator, BaseModel, Field, JsonValue, ValidationInfo, field_validator, model_validator

from brainq.contracts.base import OfTurn, UserText, Wire, check_json
from brainq.contracts.ids import check_id, check_turn_id
from brainq.contracts.message import Attachment, Message, with_attachment_labels
from brainq.contracts.model import Spend
from brainq.contracts.model_options import TurnOptions
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.tool import ClientTool
from brainq.errors import InvalidInput, NoParsedOutput, TurnFailed

DEFAULT_STEPS = 20
"""Enough for an agent that reads a few files, changes one and looks again. A loop still ends within minutes."""
M = TypeVar("M", bound=BaseModel)
MAX_MESSAGE_CHARS = 1_000_000
MAX_TAGS = 100
CONFIGURE_OPTIONS = frozenset({"model", "provider", "system_prompt", "skill_context", "cwd", "limits", "options"})
"""Options of a turn that need the verb `configure` beside `submit`: they change its cost, reach and system prompt."""
PromptTag = Annotated[str, Field(max_length=200)]
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
MAX_EXTRA_CHARS = 1_000_000
OnBusy = Literal["enqueue", "steer", "interrupt", "replace", "reject", "merge"]
"""What a submit does to a session with a live turn.

enqueue     wait in order
steer       go into the live turn's mailbox
interrupt   stop the live turn, then run before the waiting turns
replace     the same, and drop the waiting turns
reject      refuse with SessionBusy
merge       join the newest waiting turn into one; wait if there is none
"""
Priority = Literal["high", "normal", "low"]
"""The order of one tenant's turns while they wait for capacity."""
TurnKind = Literal["chat", "review", "compact"]
OutputSchema = dict[str, Any] | type[BaseModel]
"""A JSON schema, or a pydantic model that gives one."""
CONTENT_NOT_STORED = "[not kept: redact_logs]"
"""Replaces the user's message of an ended turn in SQL if its content is not kept."""
LATE_FAILURE_WARNINGS = {
    "learner": "nothing was learned from this turn: the step `learner` failed for good",
    "memory": "nothing of this turn was kept in memory: the step `memory` failed for good",
}
"""The warnings about finalizer steps that were given up after the result went out, by step."""


class Limits(Wire):
    """The limits of one turn. `max_tool_calls=None` means `max_steps`.

    timeout_s: the active time until the deadline, in seconds.
    max_wait_s: how long it may wait for its session or for capacity before it begins, in seconds, or None for no limit.
    first_token_s: how long a model's stream may take until its first output, in seconds.
    idle_s: how long a stream may be silent after that, in seconds. At most `first_token_s` counts.
    max_output_tokens: the length of one reply. With this limit, tokens and money of a step are reserved in full.
    max_total_tokens: input and output tokens over all steps, or None for no limit.
    max_cost_usd: money over all steps, or None for no limit.
    """

    timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    max_wait_s: float | None = Field(default=None, gt=0, le=30 * 86_400)
    first_token_s: float = Field(default=120.0, gt=0, le=86_400)
    idle_s: float = Field(default=60.0, gt=0, le=86_400)
    max_steps: int = Field(default=DEFAULT_STEPS, ge=1, le=10_000)
    max_tool_calls: int | None = Field(default=None, ge=0, le=100_000)
    max_reflections: int = Field(default=4, ge=0, le=1_000)
    max_context_tokens: int = Field(default=200_000, ge=256)
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)

    @property
    def tool_calls(self) -> int:
        return self.max_steps if self.max_tool_calls is None else self.max_tool_calls

    @model_validator(mode="after")
    def _finite(self) -> Self:
        for name in ("timeout_s", "max_wait_s", "first_token_s", "idle_s"):
            if math.isnan(getattr(self, name) or 0.0):
                raise ValueError(f"{name} must be a number of seconds")
        return self


class LimitsFields(TypedDict, total=False):
    """The fields of LimitsOverride, for callers that write a dict."""

    timeout_s: float
    max_wait_s: float
    first_token_s: float
    idle_s: float
    max_steps: int
    max_tool_calls: int
    max_reflections: int
    max_context_tokens: int
    max_output_tokens: int
    max_total_tokens: int
    max_cost_usd: float


class LimitsOverride(Wire):
    """Limits of one turn that differ from the brain's. None keeps the brain's value."""

    timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    max_wait_s: float | None = Field(default=None, gt=0, le=30 * 86_400)
    first_token_s: float | None = Field(default=None, gt=0, le=86_400)
    idle_s: float | None = Field(default=None, gt=0, le=86_400)
    max_steps: int | None = Field(default=None, ge=1, le=10_000)
    max_tool_calls: int | None = Field(default=None, ge=0, le=100_000)
    max_reflections: int | None = Field(default=None, ge=0, le=1_000)
    max_context_tokens: int | None = Field(default=None, ge=256)
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)

    def applied_to(self, base: Limits) -> Limits:
        """Return `base` with the values that are set here."""
        changed = {name: value for name, value in self.__dict__.items() if value is not None}
        return base if not changed else Limits.model_validate(base.model_dump() | changed)


class ParentCall(Wire):
    """The call that started a turn and waits for its result. `depth` counts from 1 for its children."""

    session_id: str
    turn_id: str
    call_id: str
    depth: int = Field(default=1, ge=1)


class TurnChoices(Wire):
    """The choices of a producer for a turn, in the same form on every wire. TurnRequest explains them."""

    model: str | None = None
    provider: str | None = None
    system_prompt: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    skill_context: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    output_schema: dict[str, Any] | None = None
    cwd: str | None = Field(default=None, max_length=4096)
    show_citations: bool | None = None
    prompt_id: str | None = Field(default=None, max_length=200)
    prompt_version: str | None = Field(default=None, max_length=200)
    metadata: dict[str, JsonValue] | None = None
    on_busy: OnBusy = "enqueue"
    priority: Priority = "normal"
    kind: TurnKind = "chat"
    seed: Literal["session", "empty"] = "session"
    greeting: str | None = Field(default=None, min_length=1, max_length=MAX_MESSAGE_CHARS)


class TurnRequest(TurnChoices):
    """One user message to one session, with the overrides of this turn.

    turn_id: chosen by the producer, or made by the client.
    request_key: identifies the request: a repeated key means the same turn. Defaults to turn_id.
    options: the model options that differ from the brain's.
    metadata: small JSON of the producer. It is passed to callbacks, and never read by brainq.
    on_busy: what to do if the session has a live turn; see `OnBusy`.
    priority: its order among its tenant's turns while the fleet has no capacity. It never passes another tenant's turn.
    kind: `review` and `compact` turns do not enter the session's history; only their outcome does.
    seed: what a review begins with: the session's conversation so far, or nothing.
    parent: the call that started this turn, for a child turn.
    readiness: False places a readiness hold at the beginning. True means that the turn is ready, and takes no flag of
        its session. None takes the oldest flag. For input of another turn see `TurnInput`.
    greeting: the assistant's message before the user's. Only the first turn of a session uses it.
    attachments: images and files of the user's message, which may then be empty. Their bytes are in SQL.
    history: a conversation that took place elsewhere, before the user's message. Only the first turn of a session uses
        it. It replaces the greeting.
    client_tools: tools that the caller runs, beside the brain's.
    brain: the name of the turn's brain, or None for the only one or the default.
    traceparent: the W3C trace context of its producer, which the turn's trace continues. It is not content: a request
        with another one, and the same request_key, is the same request.
    """

    turn_id: Annotated[str, AfterValidator(partial(check_turn_id, "turn_id"))]
    session_id: Annotated[str, AfterValidator(partial(check_id, "session_id"))]
    user_message: UserText = Field(max_length=MAX_MESSAGE_CHARS)
    request_key: str = ""
    limits: LimitsOverride = LimitsOverride()
    options: TurnOptions = TurnOptions()
    prompt_tags: tuple[PromptTag, ...] = Field(default=(), max_length=MAX_TAGS)
    parent: ParentCall | None = None
    readiness: bool | None = None
    attachments: tuple[Attachment, ...] = ()
    history: tuple[Message, ...] = ()
    client_tools: tuple[ClientTool, ...] = ()
    brain: Annotated[str, AfterValidator(partial(check_id, "brain"))] | None = None
    traceparent: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_not_empty(cls, given: Any) -> Any:
        if isinstance(given, dict):
            fields = cast("dict[str, object]", given)
            text = fields.get("user_message")
            if isinstance(text, str) and not text.strip() and not fields.get("attachments"):
                raise InvalidInput("user_message", "it is empty, and a turn answers a message; send a text")
        return given

    @field_validator("output_schema", "metadata", mode="before")
    @classmethod
    def _plain_json(cls, value: object, info: ValidationInfo) -> object:
        return check_json(str(info.field_name), value)

    @field_validator("options", mode="before")
    @classmethod
    def _of_a_turn(cls, value: object) -> object:
        # Options that were made for a brain may hold more than a turn can bring.
        return value.explicit() if isinstance(value, TurnOptions) else value

    @field_validator("request_key")
    @classmethod
    def _request_key(cls, value: str) -> str:
        return check_id("request_key", value) if value else value

    @field_validator("traceparent")
    @classmethod
    def _traceparent(cls, value: str | None) -> str | None:
        if value is not None and not TRACEPARENT.fullmatch(value):
            raise InvalidInput(
                "traceparent", "it is not a W3C trace context: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>"
            )
        return value

    @property
    def key(self) -> str:
        return self.request_key or self.turn_id

    @property
    def message_with_files(self) -> str:
        """The user's message for people, with its files by name."""
        return with_attachment_labels(self.user_message, self.attachments)


class Citation(Wire):
    """A source of the answer: a local path or a URL."""

    source: str
    title: str = ""
    quote: str = ""


class TurnResult(OfTurn):
    """The result of a turn. It goes out for every ending.

    text: the answer, or the text that reports a limit, a timeout or a failure.
    rendered_content_paths: files that the tools rendered for the user.
    ending, stop_reason: which of the four endings, and why the loop stopped.
    warnings: problems that did not change the ending.
    cost_usd: None if the price of the model is unknown.
    spends: the cost of each model call of the turn, in order.
    error: one line, for a `failed` turn, if no worker had the turn's brain in time, or if the answer does not fit its
        schema.
    last_agent_message: the model's last text if it is not `text`, as in a turn that was cut off.
    diff: one unified diff of all changes that the tools reported, or None if there are none.
    parked_ms: how long the turn waited for people and outside results. It does not count toward the time limit.
    brain: the brain that the turn named, or None in a deployment with one brain.
    parsed: the answer as JSON if the turn had an `output_schema` and the answer fits it, or else None.
        `parsed_as(Model)` returns it as a pydantic model.
    """

    text: str = ""
    local_citations: tuple[Citation, ...] = ()
    web_citations: tuple[Citation, ...] = ()
    rendered_content_paths: tuple[str, ...] = ()
    context_pack_json: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    ending: Ending
    stop_reason: StopReason
    warnings: tuple[str, ...] = ()
    cost_usd: float | None = None
    spends: tuple[Spend, ...] = ()
    steps: int = 0
    tool_calls: int = 0
    error: str | None = None
    elapsed_ms: int = 0
    last_agent_message: str | None = None
    diff: str | None = None
    parked_ms: int = 0
    parsed: JsonValue = None
    brain: str | None = None

    @property
    def ok(self) -> bool:
        """True for a whole answer of the model's own (`answered`). False for every other stop reason: a limit, a cut, a
        filter, an output schema that was not met, a failure."""
        return self.stop_reason is StopReason.ANSWERED

    def raise_for_ending(self) -> Self:
        """Return this result if it is `ok`. Raises TurnFailed otherwise, with the turn's ending."""
        if not self.ok:
            raise TurnFailed(self.turn_id, self.ending.value, self.stop_reason.value, self.error or "")
        return self

    def parsed_as(self, model: type[M]) -> M:
        """Return the answer as `model`, usually the class that was given as `output_schema`.

        A result crosses processes as JSON, and a process that did not submit it may read it. So no handle can know its
        type, and the type is named here: `result.parsed_as(Order)` is an `Order` to every type checker.

        Raises NoParsedOutput if there is none, and pydantic's ValidationError if it does not fit `model`.
        """
        if self.parsed is None:
            raise NoParsedOutput(self.turn_id, self.stop_reason.value, self.error or "")
        return model.model_validate(self.parsed)
