"""A token's row: all of it but what would let somebody in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

TokenState = Literal["live", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Instants are the database's clock, aware, UTC.

    sessions       prefixes, or ("*",)
    verbs          as they were given; a word that this brainq does not know lets nobody do anything
    expires_at     None: never
    last_used_at   to the minute, and None before its first use
    read_at        when the row was read
    """

    token_id: str
    name: str
    sessions: tuple[str, ...]
    verbs: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    read_at: datetime
    secret_hash: str = field(repr=False)

    @property
    def left_s(self) -> float | None:
        """Until it expires, from `read_at`; None: for ever."""
        return None if self.expires_at is None else (self.expires_at - self.read_at).total_seconds()

    @property
    def idle_s(self) -> float | None:
        """Since its use was noted, at `read_at`; None: it never was."""
        return None if self.last_used_at is None else (self.read_at - self.last_used_at).total_seconds()

    @property
    def state(self) -> TokenState:
        """As it was at `read_at`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.left_s is not None and self.left_s <= 0 else "live"
