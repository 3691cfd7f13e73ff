"""A token as it is written: `bq_<id>_<secret>`. The id is no secret; the secret is 256 random bits."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field

_TEXT = re.compile(r"bq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_ID_BYTES = 6
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token's two parts. Its repr has no secret."""

    token_id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> TokenText:
        return cls(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))

    @classmethod
    def read(cls, text: str) -> TokenText | None:
        """None for what no token looks like."""
        found = _TEXT.fullmatch(text)
        return None if found is None else cls(found[1], found[2])

    def write(self) -> str:
        return f"bq_{self.token_id}_{self.secret}"

    def hashed(self) -> str:
        """What is kept of the secret. SHA-256, which is fast: a slow hash makes guessing dear, and 256 random bits
        are not guessed."""
        return hashlib.sha256(self.secret.encode()).hexdigest()
