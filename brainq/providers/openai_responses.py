"""OpenAI's Responses API, and the servers that speak it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from brainq.contracts.model import ModelReply, ModelRequest
from brainq.providers import openai_options, responses_reply, responses_wire
from brainq.providers.failures import detail, of_model, refused_parameter
from brainq.providers.openai_account import account, required
from brainq.providers.replayed import EARLIER
from brainq.providers.retry import RetryPolicy
from brainq.providers.vendor import StreamReader, VendorProvider


class OpenAIResponsesProvider(VendorProvider):
    """The Responses API through the SDK `openai` (extra `brainq[openai]`).

    The model's reasoning is kept, encrypted, and sent back with the results of its calls. The service stores nothing.

    api_key    default: OPENAI_API_KEY; `none` if there is a base_url and no key, for local servers
    base_url   default: OPENAI_BASE_URL, else OpenAI's own
    name       what prices and errors call the service
    """

    sdk_name = "openai"
    optional = ("include", "text.format", "store")
    of_schema = "text.format"
    absent = ("seed", "stop")
    for_once = VendorProvider.for_once | {EARLIER}

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str = responses_wire.WIRE,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(name=name, retry=retry)
        self._api_key, self._base_url = account(api_key, base_url)

    def _require_key(self) -> str:
        return required(self._api_key)

    @property
    def server_url(self) -> str:
        """Where its requests go."""
        return self._base_url or "https://api.openai.com/v1"

    def _make_client(self, sdk: Any) -> Any:
        return sdk.OpenAI(api_key=self._require_key(), base_url=self._base_url, max_retries=0)

    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        body = responses_wire.to_body(
            request,
            stream=stream,
            encrypted=_no_encryption(request.model) not in refused,
            reasoning=EARLIER not in refused,
            blocks=self._blocks(request, refused),
        )
        options = openai_options.responses_parameters(request, cache_key=self._base_url is None)
        body |= {key: value for key, value in options.items() if of_model(key, request.model) not in refused}
        return {key: value for key, value in body.items() if not _is_refused(key, refused)}

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        said = " ".join(detail(body)).lower()
        if status == 400 and "encrypted content is not supported" in said:
            return _no_encryption(request.model)
        if status == 400 and ("invalid_encrypted_content" in said or "could not be decrypted" in said):
            return EARLIER  # of another account's, or encrypted with a key that is gone
        named = refused_parameter(status, body, openai_options.OF_RESPONSES_MODEL)
        return of_model(named, request.model) if named else super()._refusal(request, status, body)

    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return client.responses.with_streaming_response.create(**body, timeout=timeout)

    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        return responses_reply.from_response(body, self.name)

    def _new_reader(self, request: ModelRequest) -> StreamReader:
        return responses_reply.ResponsesStream(self.name)


def _no_encryption(model: str) -> str:
    return f"include: {model}"


def _is_refused(key: str, refused: frozenset[str]) -> bool:
    return key in refused or (key == "text" and "text.format" in refused)
