"""The recorded replies over a vendor's own API: what travels is what OpenAI or Anthropic would see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.providers import Provider
from examples.airline.model import RecordedModel

WireName = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True)
class Wire:
    """Whose API is spoken, and where: `url` is what that vendor's SDK calls `base_url`."""

    name: WireName
    url: str

    def provider(self) -> Provider:
        # Never a real key: it would go to whoever listens at the address.
        if self.name == "openai":
            return OpenAIProvider(base_url=self.url, api_key="none")
        return AnthropicProvider(base_url=self.url, api_key="none")


class WireModel:
    """Asks a server that holds the recorded replies, and holds brainq to the conversation.

    A session is asked for as the model of its name: the server tells sessions apart by that.
    """

    def __init__(self, recorded: RecordedModel, provider: Provider) -> None:
        self._recorded = recorded
        self._provider = provider

    @property
    def name(self) -> str:
        return self._provider.name

    def generate(self, request: ModelRequest) -> ModelReply:
        return self._provider.generate(self._addressed(request))

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        return self._provider.generate_stream(self._addressed(request))

    def _addressed(self, request: ModelRequest) -> ModelRequest:
        session_id = self._recorded.check(request)
        return request.model_copy(update={"model": session_id})
