"""Where OpenAI's SDK connects to, and with which key."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from brainq.errors import SetupError


@dataclass(frozen=True, slots=True)
class OpenAIAccount:
    """`base_url` None is OpenAI's own service."""

    base_url: str | None
    api_key: str | None = field(repr=False)

    @classmethod
    def of(cls, api_key: str | None, base_url: str | None) -> OpenAIAccount:
        """What is given, else what the environment says. A server of one's own may want no key."""
        url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        return cls(url, api_key or os.environ.get("OPENAI_API_KEY") or ("none" if url else None))

    def require_key(self) -> str:
        """Raises SetupError if there is no key."""
        if self.api_key is None:
            raise SetupError(
                "no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
            )
        return self.api_key

    def client(self, sdk: Any) -> Any:
        """A client whose own retries are off."""
        return sdk.OpenAI(api_key=self.require_key(), base_url=self.base_url, max_retries=0)
