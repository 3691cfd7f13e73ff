"""Conversion between brainq's messages and pydantic-ai's, and of its exceptions to ProviderError.

Imported when a model is called, because pydantic-ai takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, cast

from pydantic_ai import exceptions as theirs
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as PydanticRequest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from brainq.adapters.models.attachments import AttachmentBlocks, move_behind_results
from brainq.adapters.models.call_stream import CallPart, CallStream, argument_piece
from brainq.adapters.models.failures import from_status, refused_parameter
from brainq.adapters.models.tool_schema import tool_parameters
from brainq.adapters.models.wire import WireIds, arguments_object, wire_name
from brainq.contracts.message import Message, Reasoning
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.model_options import TOOL_CHOICES
from brainq.contracts.usage import reported_usage
from brainq.engine.models.asking.retry import ServiceError
from brainq.errors import ProviderError, SetupError
from brainq.runtime.text.shorten import beginning
from brainq.runtime.text.surrogates import clean, clean_json

MAX_MESSAGE_CHARS = 300
REFUSABLE_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "seed": ("seed",),
    "stop_sequences": ("stop", "stop_sequences", "stopSequences"),
    "tool_choice": ("tool_choice",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "thinking": ("reasoning_effort", "reasoning", "thinking", "thinking_config", "thinkingConfig"),
}
"""pydantic-ai's settings, and their names in services. A setting is left out for a model once it has refused it."""
_THEY_KNOW_MORE: tuple[tuple[type[Exception], str], ...] = (
    (theirs.ModelQuotaExceededError, "quota"),
    (theirs.ModelContextWindowExceededError, "too_long"),
)
# The first match counts.
_KINDS: tuple[tuple[type[Exception], str, bool], ...] = (
    (theirs.ModelQuotaExceededError, "quota", False),
    (theirs.ModelRateLimitError, "rate_limited", True),
    (theirs.ModelContextWindowExceededError, "too_long", False),
    (theirs.ModelAuthenticationError, "denied", False),
    (theirs.ModelNotFoundError, "denied", False),
    (theirs.ModelRequestRejectedError, "refused", False),
    (theirs.ModelTimeoutError, "timeout", True),
    (theirs.ModelRequestTimeout, "timeout", True),
    (TimeoutError, "timeout", True),
    (theirs.ModelConnectionError, "connection", True),
    (theirs.ModelUnavailableError, "server", True),
    (theirs.ModelServerError, "server", True),
    (theirs.ContentFilterError, "filtered", False),
    (theirs.UnexpectedModelBehavior, "malformed", True),
    (ValueError, "malformed", True),
    (OSError, "connection", True),
)


def from_pydantic_error(error: Exception, provider: str) -> ProviderError | SetupError:
    """Return the error for anything that a call of a model can raise: SetupError if a key or a package is missing."""
    if isinstance(error, ProviderError | SetupError):
        return error
    words = beginning(clean(str(error)), MAX_MESSAGE_CHARS)
    if isinstance(error, ImportError):
        return SetupError(f"the provider {provider!r} needs a package that is not installed; {words}")
    if isinstance(error, theirs.UserError):
        return SetupError(f"the provider {provider!r} cannot be used; {words}")
    if isinstance(error, theirs.ModelHTTPError):
        return _from_http_error(error, provider)
    wait_s = getattr(error, "retry_after", None)
    for kind_of_error, kind, retryable in _KINDS:
        if isinstance(error, kind_of_error):
            return ServiceError(f"{provider}: {words}", kind=kind, retryable=retryable, retry_after_s=wait_s)
    if isinstance(error, theirs.ModelAPIError):
        return ServiceError(f"{provider}: {words}", kind="server", retryable=True, retry_after_s=wait_s)
    # An HTTP library's own exception, raised while a body is read. Neither library is imported here.
    if any(base.__name__ in ("TransportError", "RequestError") for base in type(error).__mro__):
        return ServiceError(f"{provider}: the connection failed ({words})", kind="connection", retryable=True)
    return ServiceError(f"{provider}: {type(error).__name__}: {words}", kind="refused", retryable=False)


def _from_http_error(error: theirs.ModelHTTPError, provider: str) -> ServiceError:
    """Return the error for a refusal, by brainq's table. pydantic-ai's class decides if the table has nothing but the
    status."""
    known = from_status(provider, error.status_code, error.headers or {}, error.body)
    if known.retry_after_s is None and known.retryable:
        known.retry_after_s = error.retry_after
    if known.kind in ("refused", "rate_limited"):
        for kind_of_error, kind in _THEY_KNOW_MORE:
            if isinstance(error, kind_of_error):
                return ServiceError(str(known), kind=kind, retryable=False)
    return known


def refused_setting(error: BaseException, settings: Mapping[str, Any]) -> str | None:
    """Return the setting that a refusal is about, or None if it is about something else."""
    if not isinstance(error, theirs.ModelHTTPError):
        return None
    names = {
        name: setting for setting in REFUSABLE_SETTINGS if setting in settings for name in REFUSABLE_SETTINGS[setting]
    }
    named = refused_parameter(error.status_code, error.body, names)
    return None if named is None else names[named]


_PROVIDER_FIELDS = ("id", "signature", "provider_name", "provider_details")
"""The fields of a part that its service needs back unchanged. Gemini signs calls and texts as well."""
_FINISH = {"tool_call": "tool_calls"}


def wire_of(system: str) -> str:
    return f"pydantic-ai:{system}"


def to_messages(request: ModelRequest, system: str) -> list[ModelMessage]:
    """Return the conversation. A system message after its beginning keeps its position, as text of the user."""
    ids = WireIds()
    made: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    names: dict[str, str] = {}
    for message in move_behind_results(request.messages):
        if message.role == "assistant":
            if parts:
                made.append(PydanticRequest(parts=parts))
                parts = []
            names |= {call.id: wire_name(call.name) for call in message.calls}
            answer = _response(message, ids, request.model, system)
            if answer.parts:
                made.append(answer)
        elif message.role == "tool":
            shown = [clean(message.content), *AttachmentBlocks(request.blobs).text(message.attachments)]
            parts.append(
                ToolReturnPart(
                    tool_name=names.get(message.call_id) or wire_name(message.name),
                    content="\n\n".join(text for text in shown if text),
                    tool_call_id=ids.for_result(message),
                    outcome="failed" if message.is_error else "success",
                )
            )
        elif message.role == "system" and not made and all(isinstance(p, SystemPromptPart) for p in parts):
            parts.append(SystemPromptPart(clean(message.content)))
        else:
            parts.append(UserPromptPart(_content(message, request)))
    return [*made, PydanticRequest(parts=parts)] if parts else made


def _content(message: Message, request: ModelRequest) -> str | list[UserContent]:
    text = clean(message.content)
    if not message.attachments:
        return text
    content: list[UserContent] = [text] if text else []
    blocks = AttachmentBlocks(request.blobs)
    for one in message.attachments:
        if blocks.can_show(one):
            content.append(BinaryContent(data=request.blobs[one.sha256], media_type=one.media_type))
        else:
            content.append(blocks.in_words(one))
    return content


def _response(message: Message, ids: WireIds, model: str, system: str) -> ModelResponse:
    """Return a reply in its original order, with the fields that its service needs back."""
    kept = [one for one in message.reasoning if one.wire == wire_of(system) and one.model == model]
    blocks = [(one.before, cast("dict[str, Any]", one.block), one.text) for one in kept]
    text = clean(message.content)
    text_block = next((block for _, block, _ in blocks if block.get("part") == "text"), {})
    parts: list[ModelResponsePart] = []
    for index in range(len(message.calls) + 1):
        parts += [
            ThinkingPart(content=thought, **_replayed_part(block))
            for before, block, thought in blocks
            if before == index and block.get("part") == "thinking"
        ]
        if index == 0 and (text.strip() or text_block):
            parts.append(TextPart(text, **_replayed_part(text_block, without="signature")))
        if index < len(message.calls):
            call = message.calls[index]
            marked = next(
                (b for before, b, _ in blocks if before == index and b.get("part") == "call"), dict[str, Any]()
            )
            parts.append(
                ToolCallPart(
                    tool_name=wire_name(call.name),
                    args=arguments_object(call.arguments),
                    tool_call_id=ids.for_call(call),
                    **_replayed_part(marked, without="signature"),
                )
            )
    origin = next((block for _, block, _ in blocks), dict[str, Any]())
    return ModelResponse(
        parts=parts, model_name=model, provider_name=origin.get("by"), canonical_system=origin.get("canonical")
    )


def _replayed_part(block: dict[str, Any], without: str = "") -> dict[str, Any]:
    return {name: block[name] for name in _PROVIDER_FIELDS if name != without and name in block}


def to_parameters(request: ModelRequest, model: Model) -> ModelRequestParameters:
    """Return the tools and the schema of the answer. A model without support for schemas reads it in its
    instructions."""
    schema = request.output_schema
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=clean(tool.description), parameters_json_schema=tool_parameters(tool)
            )
            for tool in request.tools
        ],
        output_mode="text" if schema is None else _output_mode(model),
        output_object=None if schema is None else OutputObjectDefinition(json_schema=clean_json(schema), name="reply"),
    )


def _output_mode(model: Model) -> Literal["native", "prompted"]:
    return "native" if model.profile.get("supports_json_schema_output", False) else "prompted"


def to_settings(request: ModelRequest, timeout_s: float, refused: Collection[str] = ()) -> ModelSettings:
    """Return the options that are set, without those that the model has `refused`. brainq makes the retries."""
    options = request.options
    choice = options.tool_choice if request.tools else None
    settings: dict[str, Any] = {
        "timeout": timeout_s,
        "max_retries": 0,
        "max_tokens": request.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop_sequences": None if options.stop is None else [clean(text) for text in options.stop],
        "tool_choice": choice if choice is None or choice in TOOL_CHOICES else [choice],
        "parallel_tool_calls": options.parallel_tool_calls if request.tools else None,
        "thinking": False if options.reasoning_effort == "none" else options.reasoning_effort,
        "extra_headers": options.extra_headers and dict(options.extra_headers),
        "extra_body": options.extra_body and dict(options.extra_body),
    }
    sent = {name: value for name, value in settings.items() if value is not None and name not in refused}
    return cast("ModelSettings", sent)


def call_part(part: Any, index: int | None = None) -> CallPart:
    """Read a call, or a piece of one in a stream."""
    name = getattr(part, "tool_name", None) or getattr(part, "tool_name_delta", None) or ""
    arguments = getattr(part, "args", None) or getattr(part, "args_delta", None)
    return CallPart(call_id=part.tool_call_id or "", index=index, name=name, arguments=argument_piece(arguments))


def from_response(response: ModelResponse, model: str, system: str, streamed: CallStream | None = None) -> ModelReply:
    """Return the reply, with what its service needs back. `streamed` has the calls as they came in a stream."""
    calls = streamed or CallStream()
    calls.conclude(call_part(part) for part in response.parts if isinstance(part, ToolCallPart))
    called: list[str] = []
    reasoning: list[Reasoning] = []
    texts: list[str] = []
    for part in response.parts:
        if isinstance(part, ThinkingPart):
            reasoning.append(_replay_record("thinking", part, response, model, system, len(called), part.content))
        elif isinstance(part, TextPart):
            texts.append(part.content)
            reasoning.extend(_part_record("text", part, response, model, system, len(called)))
        elif isinstance(part, ToolCallPart) and part.tool_call_id not in called:
            reasoning.extend(_part_record("call", part, response, model, system, len(called)))
            called.append(part.tool_call_id)
    finish = _FINISH.get(response.finish_reason or "", response.finish_reason or "")
    return calls.reply(
        wire_of(system),
        "tool_calls" if finish == "stop" and called else finish,
        text=clean("".join(texts)),
        usage=from_usage(response.usage),
        model=response.model_name or model,
        reasoning=reasoning,
    )


def from_usage(usage: RequestUsage) -> TokenUsage:
    """Return the usage. Its `input_tokens` includes the cached tokens, as in pydantic-ai."""
    return reported_usage(
        sent=usage.input_tokens,
        written=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_creation=usage.cache_write_tokens,
        thought=usage.output_reasoning_tokens,
    )


def _part_record(
    kind: str, part: TextPart | ToolCallPart, response: ModelResponse, model: str, system: str, before: int
) -> Iterator[Reasoning]:
    """Yield the data of a text or a call that its service needs back. Most parts have none."""
    if part.provider_details or part.id:
        yield _replay_record(kind, part, response, model, system, before, "")


def _replay_record(
    kind: str, part: Any, response: ModelResponse, model: str, system: str, before: int, text: str
) -> Reasoning:
    block = {
        "part": kind,
        "by": response.provider_name,
        "canonical": response.canonical_system,
        **{name: getattr(part, name, None) for name in _PROVIDER_FIELDS},
    }
    fields = {name: value for name, value in block.items() if value is not None and _is_json(value)}
    return Reasoning(wire=wire_of(system), text=clean(text), block=clean_json(fields), before=before, model=model)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
