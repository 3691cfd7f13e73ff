"""Anthropic's models: the provider on their SDK, and the options and cache breakpoints of its requests."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from inspect import signature
from typing import Any

from brainq.adapters.models.anthropic import wire
from brainq.adapters.models.anthropic.thinking import is_thinking_rejected, thinking_parameters
from brainq.adapters.models.error_body import error_detail
from brainq.adapters.models.failures import is_unsupported, refusal_key
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.adapters.models.wire import EARLIER_REASONING
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.model_options import TOOL_CHOICES
from brainq.runtime.text.surrogates import clean, clean_json

# A cache breakpoint marks the end of a prefix that the service caches, so that the next step of a turn is read from the
# cache.
#
# The API accepts four. A later request finds a cached prefix if it begins with the same blocks, and the search looks
# back over 20 blocks only. So there is one breakpoint after the tools, which all sessions share, one after the system
# prompt, one at the end, and one where the request of the previous step ended.

_CACHE_MARK = {"type": "ephemeral"}
REFUSABLE_PARAMETERS = ("temperature", "top_p", "tool_choice", "stop_sequences")


def is_cache_worthwhile(request: ModelRequest) -> bool:
    """Return whether the prefix is likely to be read again. Caching it costs a quarter more than reading it once.

    This is so if the model has tools, because further steps follow, and in a conversation that continues.
    """
    if request.options.prompt_cache is not None:
        return request.options.prompt_cache
    goes_on = any(message.role == "assistant" for message in request.messages)
    return request.purpose == "step" and (bool(request.tools) or goes_on)


def with_breakpoints(body: dict[str, Any]) -> dict[str, Any]:
    made = dict(body)
    if body.get("tools"):
        made["tools"] = [*body["tools"][:-1], _with_cache_mark(body["tools"][-1])]
    if body.get("system"):
        made["system"] = [_with_cache_mark({"type": "text", "text": body["system"]})]
    messages = list(body["messages"])
    for at in _breakpoint_messages(messages):
        content = messages[at]["content"]
        messages[at] = {**messages[at], "content": [*content[:-1], _with_cache_mark(content[-1])]}
    made["messages"] = messages
    return made


def _breakpoint_messages(messages: list[dict[str, Any]]) -> list[int]:
    """Return the newest message, and the one before the newest reply. Both are the user's, so all their blocks can be
    cached."""
    return [at for at, message in enumerate(messages) if message["role"] == "user"][-2:]


def _with_cache_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "cache_control": _CACHE_MARK}


def option_parameters(request: ModelRequest, refused: Collection[str]) -> dict[str, Any]:
    """Return the parameters for `request.options`, without those that its model has `refused`."""
    options, model = request.options, request.model
    body: dict[str, Any] = {"temperature": options.temperature, "top_p": options.top_p}
    if options.stop is not None:
        body["stop_sequences"] = [clean(text) for text in options.stop]
    choice = _tool_choice(options.tool_choice, options.parallel_tool_calls) if request.tools else None
    body["tool_choice"] = choice
    body = {
        name: value for name, value in body.items() if value is not None and refusal_key(name, model) not in refused
    }
    if options.reasoning_effort is not None:
        body |= thinking_parameters(request, options.reasoning_effort, refused)
    return body


def refused_option(request: ModelRequest, status: int, body: Any, refused: Collection[str]) -> str | None:
    """Return the option that this answer refuses, as a name for `option_parameters`, or None if it is about something
    else.

    A refusal may name several options, as in "temperature may only be 1 with thinking": it is about the first one.
    """
    if not is_unsupported(status, body):
        return None
    sent = option_parameters(request, refused)
    about = {name: name for name in REFUSABLE_PARAMETERS if name in sent}
    if "thinking" in sent:
        about["thinking"] = f"thinking {sent['thinking']['type']}"
    if "output_config" in sent:
        about["effort"] = f"effort {sent['output_config']['effort']}"
    text = error_detail(body).message.lower()
    named = min((word for word in about if word in text), key=text.index, default=None)
    return None if named is None else refusal_key(about[named], request.model)


def _tool_choice(choice: str | None, parallel: bool | None) -> dict[str, Any] | None:
    if choice is None and parallel is None:
        return None
    words = {"required": "any", None: "auto"}
    made: dict[str, Any] = {"type": words.get(choice, choice)}
    if choice is not None and choice not in TOOL_CHOICES:
        made = {"type": "tool", "name": choice}
    if parallel is not None and choice != "none":
        made["disable_parallel_tool_use"] = not parallel
    return made


class AnthropicProvider(VendorProvider):
    """The Messages API through the SDK `anthropic` (extra `brainq[anthropic]`).

    api_key: defaults to ANTHROPIC_API_KEY, or to `none` if there is a base_url and no key.
    base_url: defaults to ANTHROPIC_BASE_URL, or else Anthropic's own.
    name: the name of the service in prices and errors.
    """

    sdk_name = default_name = "anthropic"
    vendor = "Anthropic"
    key_variable, url_variable = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    key_remedy = "set ANTHROPIC_API_KEY"
    vendor_url = "https://api.anthropic.com"
    optional_parameters = ("output_config", "cache_control")
    schema_parameter = "output_config"
    unsupported_options = ("seed",)
    left_out_once = VendorProvider.left_out_once | {EARLIER_REASONING}

    def _make_client(self, sdk: Any) -> Any:
        # brainq makes the span of a model call. The SDK's own span would count each call twice.
        known = signature(sdk.Anthropic).parameters
        quiet: dict[str, Any] = {"open_telemetry": False} if "open_telemetry" in known else {}
        return sdk.Anthropic(api_key=self._require_key(), base_url=self._base_url, max_retries=0, **quiet)

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = wire.to_body(
            request, stream=stream, blocks=self._blocks(request, refused), thinking=EARLIER_REASONING not in refused
        )
        if is_cache_worthwhile(request) and "cache_control" not in refused:
            body = with_breakpoints(body)
        # Some versions of the SDK do not accept these as arguments of their own.
        extra = option_parameters(request, refused)
        if request.output_schema is not None and "output_config" not in refused:
            schema = clean_json(request.output_schema)
            # The service accepts a part of JSON Schema only; newer SDKs know which.
            transform = getattr(self._sdk(), "transform_schema", None)
            schema = schema if transform is None else transform(schema)
            extra.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
        if extra:
            body["extra_body"] = extra
        return body

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        if is_thinking_rejected(status, body):
            return EARLIER_REASONING
        named = refused_option(request, status, body, self._refused)
        return named or super()._refusal(request, status, body)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.messages.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return wire.from_body(body)

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        return wire.AnthropicStream()
