"""OpenAI's Responses API, and the servers that speak it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from brainq.contracts.model import ModelReply, ModelRequest
from brainq.models.asking.failures import error_detail, refusal_key, refused_parameter
from brainq.models.asking.retry import RetryPolicy
from brainq.models.asking.vendor_provider import StreamReader
from brainq.models.openai import options as openai_options
from brainq.models.openai import responses_wire
from brainq.models.openai.options import OpenAIService
from brainq.models.wire import EARLIER_REASONING


class OpenAIResponsesProvider(OpenAIService):
    """The Responses API through the SDK `openai` (extra `brainq[openai]`).

    The model's reasoning is kept, encrypted, and sent back with the results of its calls. The service stores nothing.

    api_key    default: OPENAI_API_KEY; `none` if there is a base_url and no key, for local servers
    base_url   default: OPENAI_BASE_URL, else OpenAI's own
    name       what prices and errors call the service
    """

    optional_parameters = ("include", "text.format", "store")
    schema_parameter = "text.format"
    unsupported_options = ("seed", "stop")
    left_out_once = OpenAIService.left_out_once | {EARLIER_REASONING}

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str = responses_wire.WIRE,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(api_key, base_url, name, retry)

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = responses_wire.to_body(
            request,
            stream=stream,
            encrypted=_encryption_key(request.model) not in refused,
            reasoning=EARLIER_REASONING not in refused,
            blocks=self._blocks(request, refused),
        )
        options = openai_options.responses_parameters(request, cache_key=self._base_url is None)
        body |= {key: value for key, value in options.items() if refusal_key(key, request.model) not in refused}
        return {key: value for key, value in body.items() if not _is_refused(key, refused)}

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        text = " ".join(error_detail(body)).lower()
        if status == 400 and "encrypted content is not supported" in text:
            return _encryption_key(request.model)
        if status == 400 and ("invalid_encrypted_content" in text or "could not be decrypted" in text):
            return EARLIER_REASONING  # of another account's, or encrypted with a key that is gone
        named = refused_parameter(status, body, openai_options.REFUSABLE_RESPONSES_PARAMETERS)
        return refusal_key(named, request.model) if named else super()._refusal(request, status, body)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.responses.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return responses_wire.from_response(body, self.name)

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        return responses_wire.ResponsesStream(self.name)


def _encryption_key(model: str) -> str:
    return f"include: {model}"


def _is_refused(key: str, refused: frozenset[str]) -> bool:
    return key in refused or (key == "text" and "text.format" in refused)
