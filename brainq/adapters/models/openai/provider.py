"""The providers for OpenAI's two APIs, chat completions and Responses, and for servers that implement them."""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager
from typing import Any

from brainq.adapters.models.error_body import error_detail
from brainq.adapters.models.failures import refusal_key, refused_parameter
from brainq.adapters.models.openai import chat_wire, responses_wire
from brainq.adapters.models.openai.reasoning import REFUSABLE_FIELDS, ThinkSplitter
from brainq.adapters.models.openai.roles import ROLES, Roles, require_roles, stricter_roles
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.adapters.models.wire import EARLIER_REASONING
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.model_options import TOOL_CHOICES
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.runtime.text.surrogates import clean

_OUTPUT_LIMITS = ("max_completion_tokens", "max_tokens")
_REFUSABLE_BY_BOTH = ("temperature", "top_p", "tool_choice", "parallel_tool_calls", "prompt_cache_key")
REFUSABLE_CHAT_PARAMETERS = (*_REFUSABLE_BY_BOTH, "seed", "stop", "reasoning_effort")
REFUSABLE_RESPONSES_PARAMETERS = (*_REFUSABLE_BY_BOTH, "reasoning")
"""Parameters that are left out for a model once it has refused them. Models of one service differ in this."""


class OpenAIService(VendorProvider):
    sdk_name = "openai"
    vendor = "OpenAI"
    key_variable, url_variable = "OPENAI_API_KEY", "OPENAI_BASE_URL"
    key_remedy = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
    vendor_url = "https://api.openai.com/v1"

    def _make_client(self, sdk: Any) -> Any:
        return sdk.OpenAI(api_key=self._require_key(), base_url=self._base_url, max_retries=0)


def chat_parameters(request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
    """Return the parameters of chat completions. `cache_key`: whether this service supports `prompt_cache_key`."""
    options, name = request.options, _named_tool(request.options.tool_choice)
    body = _shared_parameters(request, cache_key=cache_key) | {
        "seed": options.seed,
        "stop": None if options.stop is None else [clean(text) for text in options.stop],
        "reasoning_effort": options.reasoning_effort,
    }
    if name and request.tools:
        body["tool_choice"] = {"type": "function", "function": {"name": name}}
    return {name: value for name, value in body.items() if value is not None}


def responses_parameters(request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
    """Return the parameters of Responses, which has no `seed` and no `stop`."""
    effort, name = request.options.reasoning_effort, _named_tool(request.options.tool_choice)
    body = _shared_parameters(request, cache_key=cache_key)
    body["reasoning"] = None if effort is None else {"effort": effort}
    if name and request.tools:
        body["tool_choice"] = {"type": "function", "name": name}
    return {name: value for name, value in body.items() if value is not None}


def _shared_parameters(request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
    options = request.options
    body: dict[str, Any] = {"temperature": options.temperature, "top_p": options.top_p}
    if request.tools:  # a request without tools that mentions calls is refused
        body["tool_choice"] = options.tool_choice
        body["parallel_tool_calls"] = options.parallel_tool_calls
    if cache_key and options.prompt_cache is not False and request.session_id:
        # Requests of one session go where its prefix is cached. The service need not know the session's id.
        body["prompt_cache_key"] = hashlib.sha256(request.session_id.encode()).hexdigest()[:32]
    return body


def _named_tool(choice: str | None) -> str | None:
    return None if choice in TOOL_CHOICES else choice


class OpenAIProvider(OpenAIService):
    """Chat completions through the SDK `openai` (extra `brainq[openai]`).

    api_key: defaults to OPENAI_API_KEY, or to `none` for a local server: one that has a base_url and no key.
    base_url: defaults to OPENAI_BASE_URL, or else OpenAI's own. It may also be vLLM, llama.cpp, Ollama and others.
    name: the name of the service in prices and errors.
    roles: the form of conversation that the server's chat template takes, as in `roles.py`. Defaults to
        OPENAI_CHAT_ROLES, or else `all`. The provider also adopts a stricter form when the server asks for it.
    """

    default_name = "openai"
    optional_parameters = ("stream_options", "response_format", *_OUTPUT_LIMITS)
    schema_parameter = "response_format"

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str | None = None,
        roles: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(api_key=api_key, base_url=base_url, name=name, retry=retry)
        self._thinks_first: frozenset[str] = frozenset()  # models whose template writes the opening tag
        self._roles: Roles = require_roles("roles", roles or os.environ.get("OPENAI_CHAT_ROLES") or "all")

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = chat_wire.to_body(
            request,
            stream=stream,
            max_tokens_key=self._output_limit(refused),
            roles=self._accepted_roles(request.model, refused),
            blocks=self._blocks(request, refused),
            thinking=refusal_key(EARLIER_REASONING, request.model) not in refused,
        )
        options = chat_parameters(request, cache_key=self._base_url is None)
        body |= {key: value for key, value in options.items() if refusal_key(key, request.model) not in refused}
        return {key: value for key, value in body.items() if key not in refused}

    def _output_limit(self, refused: frozenset[str]) -> str:
        """Return the name of the output limit. Newer models refuse `max_tokens`; some servers know no other name."""
        names = _OUTPUT_LIMITS if self._base_url is None else reversed(_OUTPUT_LIMITS)
        return next((name for name in names if name not in refused), _OUTPUT_LIMITS[0])

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        roles = stricter_roles(status, body, self._accepted_roles(request.model, self._refused))
        if roles:
            return _roles_key(roles, request.model)
        if refused_parameter(status, body, REFUSABLE_FIELDS):
            return refusal_key(EARLIER_REASONING, request.model)
        named = refused_parameter(status, body, REFUSABLE_CHAT_PARAMETERS)
        return refusal_key(named, request.model) if named else super()._refusal(request, status, body)

    def _accepted_roles(self, model: str, refused: frozenset[str]) -> Roles:
        """Return the roles for a model. One server may have models with different templates."""
        learned = [roles for roles in ROLES if _roles_key(roles, model) in refused]
        return max([self._roles, *learned], key=ROLES.index)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.chat.completions.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return chat_wire.from_body(body, self._tags(request.model))

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        def learn() -> None:
            self._thinks_first |= {request.model}

        return chat_wire.OpenAIStream(self._tags(request.model), learn)

    def _tags(self, model: str) -> ThinkSplitter:
        """Return the splitter of reasoning. Only servers of open models have templates."""
        return ThinkSplitter(is_open=model in self._thinks_first, may_be_open=self._base_url is not None)


def _roles_key(roles: Roles, model: str) -> str:
    return refusal_key(f"roles {roles}", model)


class OpenAIResponsesProvider(OpenAIService):
    """The Responses API through the SDK `openai` (extra `brainq[openai]`).

    The model's reasoning is kept, encrypted, and sent back with the results of its calls. The service stores nothing.

    api_key: defaults to OPENAI_API_KEY, or to `none` for a local server: one that has a base_url and no key.
    base_url: defaults to OPENAI_BASE_URL, or else OpenAI's own.
    name: the name of the service in prices and errors.
    """

    default_name = responses_wire.WIRE
    optional_parameters = ("include", "text.format", "store", "max_output_tokens")
    schema_parameter = "text.format"
    unsupported_options = ("seed", "stop")
    left_out_once = OpenAIService.left_out_once | {EARLIER_REASONING}

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = responses_wire.to_body(
            request,
            stream=stream,
            encrypted=_encryption_key(request.model) not in refused,
            reasoning=EARLIER_REASONING not in refused,
            blocks=self._blocks(request, refused),
        )
        options = responses_parameters(request, cache_key=self._base_url is None)
        body |= {key: value for key, value in options.items() if refusal_key(key, request.model) not in refused}
        if "text.format" in refused:
            body.pop("text", None)
        return {key: value for key, value in body.items() if key not in refused}

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        text = error_detail(body).text
        if status == 400 and "encrypted content is not supported" in text:
            return _encryption_key(request.model)
        if status == 400 and ("invalid_encrypted_content" in text or "could not be decrypted" in text):
            return EARLIER_REASONING  # it belongs to another account, or its key is gone
        named = refused_parameter(status, body, REFUSABLE_RESPONSES_PARAMETERS)
        return refusal_key(named, request.model) if named else super()._refusal(request, status, body)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.responses.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return responses_wire.from_response(body, self.name)

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        return responses_wire.ResponsesStream(self.name)


def _encryption_key(model: str) -> str:
    return f"include: {model}"
