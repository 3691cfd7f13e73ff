"""OpenAI, and the servers that speak its chat completions API."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

from brainq.contracts.model import ModelReply, ModelRequest
from brainq.models.asking.failures import refusal_key, refused_parameter
from brainq.models.asking.retry import RetryPolicy
from brainq.models.asking.vendor_provider import StreamReader
from brainq.models.openai import chat_wire
from brainq.models.openai import options as openai_options
from brainq.models.openai.options import OpenAIService
from brainq.models.openai.reasoning import REFUSABLE_FIELDS, ThinkSplitter
from brainq.models.openai.roles import ROLES, Roles, require_roles, stricter_roles
from brainq.models.wire import EARLIER_REASONING


class OpenAIProvider(OpenAIService):
    """Chat completions through the SDK `openai` (extra `brainq[openai]`).

    api_key    default: OPENAI_API_KEY; `none` if there is a base_url and no key, for local servers
    base_url   default: OPENAI_BASE_URL, else OpenAI's own; also vLLM, llama.cpp, Ollama and others
    name       what prices and errors call the service
    roles      the form of the conversation that the server's chat template takes, see models/openai/roles; default:
               OPENAI_CHAT_ROLES, else `all`. A stricter one is also taken up when the server asks for it.
    """

    optional_parameters = ("stream_options", "response_format", "max_completion_tokens")
    schema_parameter = "response_format"

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str = "openai",
        roles: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(api_key, base_url, name, retry)
        self._thinks_first: frozenset[str] = frozenset()  # models whose template opens the tag
        self._roles: Roles = require_roles("roles", roles or os.environ.get("OPENAI_CHAT_ROLES") or "all")

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        # OpenAI's newer models refuse `max_tokens`; some other servers know nothing else.
        old_key = self._base_url is not None or "max_completion_tokens" in refused
        body = chat_wire.to_body(
            request,
            stream=stream,
            max_tokens_key="max_tokens" if old_key else "max_completion_tokens",
            roles=self._accepted_roles(request.model, refused),
            blocks=self._blocks(request, refused),
            thinking=refusal_key(EARLIER_REASONING, request.model) not in refused,
        )
        options = openai_options.chat_parameters(request, cache_key=self._base_url is None)
        body |= {key: value for key, value in options.items() if refusal_key(key, request.model) not in refused}
        return {key: value for key, value in body.items() if key not in refused}

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        roles = stricter_roles(status, body, self._accepted_roles(request.model, self._refused))
        if roles:
            return _roles_key(roles, request.model)
        if refused_parameter(status, body, REFUSABLE_FIELDS):
            return refusal_key(EARLIER_REASONING, request.model)
        named = refused_parameter(status, body, openai_options.REFUSABLE_CHAT_PARAMETERS)
        return refusal_key(named, request.model) if named else super()._refusal(request, status, body)

    def _accepted_roles(self, model: str, refused: frozenset[str]) -> Roles:
        """One server may have models with different templates."""
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
        """Templates are those of servers of open models."""
        return ThinkSplitter(is_open=model in self._thinks_first, may_be_open=self._base_url is not None)


def _roles_key(roles: Roles, model: str) -> str:
    return refusal_key(f"roles {roles}", model)
