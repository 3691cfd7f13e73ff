"""What OpenAI's two APIs share: key, address and client, and ModelOptions as parameters."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from brainq.contracts.model import ModelRequest
from brainq.contracts.model_options import TOOL_CHOICES
from brainq.errors import SetupError
from brainq.models.asking.retry import RetryPolicy
from brainq.models.asking.vendor_provider import VendorProvider
from brainq.text.surrogates import clean


class OpenAIService(VendorProvider):
    """A provider on OpenAI's SDK.

    api_key    default: OPENAI_API_KEY; `none` if there is a base_url and no key, for local servers
    base_url   default: OPENAI_BASE_URL, else OpenAI's own service
    """

    sdk_name = "openai"

    def __init__(self, api_key: str | None, base_url: str | None, name: str, retry: RetryPolicy | None) -> None:
        super().__init__(name=name, retry=retry)
        self._base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._api_key = api_key or os.environ.get("OPENAI_API_KEY") or ("none" if self._base_url else None)

    @property
    def server_url(self) -> str:
        """Where its requests go."""
        return self._base_url or "https://api.openai.com/v1"

    def _require_key(self) -> str:
        if self._api_key is None:
            raise SetupError("no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
        return self._api_key

    def _make_client(self, sdk: Any) -> Any:
        return sdk.OpenAI(api_key=self._require_key(), base_url=self._base_url, max_retries=0)


REFUSABLE_CHAT_PARAMETERS = (
    "temperature",
    "top_p",
    "seed",
    "stop",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "prompt_cache_key",
)

REFUSABLE_RESPONSES_PARAMETERS = (
    "temperature",
    "top_p",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "prompt_cache_key",
)
"""Left out for a model once it has refused them: one service has models that take them and others that do not."""


def chat_parameters(request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
    """Those of chat completions. `cache_key`: this service takes a `prompt_cache_key`."""
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
    """Those of responses, which has no `seed` and no `stop`."""
    effort, name = request.options.reasoning_effort, _named_tool(request.options.tool_choice)
    body = _shared_parameters(request, cache_key=cache_key)
    body["reasoning"] = None if effort is None else {"effort": effort}
    if name and request.tools:
        body["tool_choice"] = {"type": "function", "name": name}
    return {name: value for name, value in body.items() if value is not None}


def _shared_parameters(request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
    options = request.options
    body: dict[str, Any] = {"temperature": options.temperature, "top_p": options.top_p}
    if request.tools:  # without tools a request that speaks of calls is refused
        body["tool_choice"] = options.tool_choice
        body["parallel_tool_calls"] = options.parallel_tool_calls
    if cache_key and options.prompt_cache is not False and request.session_id:
        # One session's requests go where its prefix is cached. The service need not know what it is called.
        body["prompt_cache_key"] = hashlib.sha256(request.session_id.encode()).hexdigest()[:32]
    return body


def _named_tool(choice: str | None) -> str | None:
    """The tool to call, where one is named."""
    return None if choice in TOOL_CHOICES else choice
