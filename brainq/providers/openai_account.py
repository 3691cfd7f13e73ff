"""Where OpenAI's SDK connects to, and with which key."""

from __future__ import annotations

import os

from brainq.errors import SetupError


def account(api_key: str | None, base_url: str | None) -> tuple[str | None, str | None]:
    """Key and address: what is given, else what the environment says. A server of one's own may want no key; no
    address is OpenAI's own service."""
    url = base_url or os.environ.get("OPENAI_BASE_URL") or None
    return api_key or os.environ.get("OPENAI_API_KEY") or ("none" if url else None), url


def required(api_key: str | None) -> str:
    """The key. Raises SetupError if there is none."""
    if api_key is None:
        raise SetupError(
            "no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        )
    return api_key
