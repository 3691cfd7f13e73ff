"""The services that are reached through pydantic-ai: their names, packages and keys."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec

from brainq.errors import SetupError

PYDANTIC_AI_PACKAGE = "pydantic_ai"
ANY_SERVICE = "pydantic-ai"
"""The provider of every other service that pydantic-ai supports: `pydantic-ai:<its name>:<model>`."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that pydantic-ai knows.

    package: the vendor's SDK, as it is imported.
    extra: the extra of pydantic-ai-slim that installs it.
    keys: environment variables of which one holds the key. Empty if the SDK finds its credentials itself.
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
    """Raise SetupError if a package or a key is missing. Imports nothing, because pydantic-ai takes seconds."""
    service = SERVICES.get(name)
    vendor = "" if service is None else f" 'pydantic-ai-slim[{service.extra}]'"
    needed = {PYDANTIC_AI_PACKAGE: "pydantic-ai-slim"} | ({} if service is None else {service.package: service.package})
    for package, shown in needed.items():
        if not _is_installed(package):
            raise SetupError(
                f"the provider {name!r} needs the package {shown!r}; install it with: pip install "
                f"'brainq[pydantic-ai]'{vendor}"
            )
    if service is not None and service.keys and not any(os.environ.get(key) for key in service.keys):
        raise SetupError(f"no API key for {name}; set {' or '.join(service.keys)}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing, too
        return False
