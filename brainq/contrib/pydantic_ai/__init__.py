"""Models of Gemini, Bedrock, Mistral and other services, through pydantic-ai's model layer."""

from __future__ import annotations

from functools import partial

from brainq.contrib.pydantic_ai.services import ANY_SERVICE, SERVICES
from brainq.engine.models.providers import Provider, ProviderSource


def _make_provider(name: str) -> Provider:
    from brainq.contrib.pydantic_ai.provider import PydanticAIProvider

    return PydanticAIProvider(name)


PROVIDERS = {name: ProviderSource(partial(_make_provider, name), service.keys) for name, service in SERVICES.items()}
PROVIDERS[ANY_SERVICE] = ProviderSource(partial(_make_provider, ANY_SERVICE))
