"""Anthropic's models."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from inspect import signature
from typing import Any

from brainq.contracts.model import ModelReply, ModelRequest
from brainq.errors import SetupError
from brainq.providers import anthropic_cache, anthropic_options, anthropic_wire
from brainq.providers.anthropic_thinking import is_not_taken_back
from brainq.providers.replayed import EARLIER
from brainq.providers.retry import RetryPolicy
from brainq.providers.vendor import StreamReader, VendorProvider
from brainq.text.surrogates import clean_json


class AnthropicProvider(VendorProvider):
    """The messages API through the SDK `anthropic` (extra `brainq[anthropic]`).

    api_key    default: ANTHROPIC_API_KEY; `none` if there is a base_url and no key
    base_url   default: ANTHROPIC_BASE_URL, else Anthropic's own
    """

    sdk_name = "anthropic"
    optional = ("output_config", "cache_control")
    of_schema = "output_config"
    absent = ("seed",)
    for_once = VendorProvider.for_once | {EARLIER}

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str = "anthropic",
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(name=name, retry=retry)
        self._base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or None
        self._api_key = api_key or os.environ.get("ANTHROPIC_API_KEY") or ("none" if self._base_url else None)

    def _require_key(self) -> str:
        if self._api_key is None:
            raise SetupError("no API key for Anthropic; set ANTHROPIC_API_KEY")
        return self._api_key

    @property
    def server_url(self) -> str:
        """Where its requests go."""
        return self._base_url or "https://api.anthropic.com"

    def _make_client(self, sdk: Any) -> Any:
        # The span of a model call is ours: a second one of the SDK's would count each call twice.
        known = signature(sdk.Anthropic).parameters
        quiet: dict[str, Any] = {"open_telemetry": False} if "open_telemetry" in known else {}
        return sdk.Anthropic(api_key=self._require_key(), base_url=self._base_url, max_retries=0, **quiet)

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = anthropic_wire.to_body(
            request,
            stream=stream,
            blocks=self._blocks(request, refused),
            thinking=EARLIER not in refused,
        )
        if anthropic_cache.pays(request) and "cache_control" not in refused:
            body = anthropic_cache.with_breakpoints(body)
        # Not every version of the SDK takes these as arguments of their own.
        extra = anthropic_options.parameters(request, refused)
        if request.output_schema is not None and "output_config" not in refused:
            schema = clean_json(request.output_schema)
            # The service takes a part of JSON schema only; newer SDKs know which.
            transform = getattr(self._sdk(), "transform_schema", None)
            schema = schema if transform is None else transform(schema)
            extra.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
        if extra:
            body["extra_body"] = extra
        return body

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        if is_not_taken_back(status, body):
            return EARLIER
        named = anthropic_options.refused_option(request, status, body, self._refused)
        return named or super()._refusal(request, status, body)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.messages.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return anthropic_wire.from_body(body)

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        return anthropic_wire.AnthropicStream()
