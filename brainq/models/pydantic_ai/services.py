"""The services that are asked by way of pydantic-ai under names of their own, and what each one needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec

from brainq.errors import SetupError

PACKAGE = "pydantic_ai"
ANY_SERVICE = "pydantic-ai"
"""The provider of every other service that pydantic-ai knows: `pydantic-ai:<its name>:<model>`."""


@dataclass(frozen=True, slots=True)
class Service:
    """
    package   the vendor's SDK, as it is imported
    extra     of pydantic-ai-slim that installs it
    keys      environment variables, one of which holds the key; none: the SDK finds its credentials by itself
    """

    package: str
    extra: str
    keys: tuple[str, ...] = ()


SERVICES = {
    "google": Service("google.genai", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "google-cloud": Service("google.genai", "google"),
    "bedrock": Service("boto3", "bedrock"),
    "mistral": Service("mistralai", "mistral", ("MISTRAL_API_KEY",)),
    "groq": Service("groq", "groq", ("GROQ_API_KEY",)),
    "cohere": Service("cohere", "cohere", ("CO_API_KEY",)),
    "xai": Service("xai_sdk", "xai", ("XAI_API_KEY",)),
    "deepseek": Service("openai", "openai", ("DEEPSEEK_API_KEY",)),
    "openrouter": Service("openai", "openrouter", ("OPENROUTER_API_KEY",)),
}


def require_service(name: str) -> None:
    """Raise SetupError where a package or a key is missing. Nothing is imported: pydantic-ai takes seconds."""
    if not _is_installed(PACKAGE):
        raise SetupError(
            f"the provider {name!r} needs the package 'pydantic-ai-slim'; install it with: pip install "
            f"'brainq[pydantic-ai]'{_service_vendor(name)}"
        )
    service = SERVICES.get(name)
    if service is None:
        return
    if not _is_installed(service.package):
        raise SetupError(
            f"the provider {name!r} needs the package {service.package!r}; install it with: pip install "
            f"'brainq[pydantic-ai]'{_service_vendor(name)}"
        )
    if service.keys and not any(os.environ.get(key) for key in service.keys):
        raise SetupError(f"no API key for {name}; set {' or '.join(service.keys)}")


def _service_vendor(name: str) -> str:
    service = SERVICES.get(name)
    return f" 'pydantic-ai-slim[{service.extra}]'" if service else ""


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False
