"""The scope of an erasure, which is one session or one tenant, and its receipt with what was deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from brainq.contracts.base import Wire
from brainq.contracts.ids import ALL_SESSIONS, check_id, check_prefixes
from brainq.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ErasureScope:
    """One session, or every session of a tenant.

    name: the session's id, or the prefix of the tenant's sessions, such as `acme:`.
    is_tenant: whether it is a tenant.
    """

    name: str
    is_tenant: bool = False

    @classmethod
    def of(cls, session: str | None, tenant: str | None) -> Self:
        """Return the scope. Raises InvalidInput unless exactly one is given, and is a valid id or prefix."""
        if (session is None) == (tenant is None):
            raise InvalidInput("session", "give one of session and tenant: what is erased is gone for good")
        if session is not None:
            return cls(check_id("session", session))
        (prefix,) = check_prefixes("tenant", (tenant,))
        if prefix == ALL_SESSIONS:
            raise InvalidInput("tenant", "'*' is everybody; erase the database and Redis themselves for that")
        return cls(prefix, is_tenant=True)

    def has(self, session_id: str) -> bool:
        return session_id.startswith(self.name) if self.is_tenant else session_id == self.name

    def __str__(self) -> str:
        return f"tenant {self.name!r}" if self.is_tenant else f"session {self.name!r}"


class Erasure(Wire):
    """The receipt of an erasure. It has counts and no content.

    scope: a session's id, or a tenant's prefix.
    rows: the deleted rows of SQL, by table. `blobs` are files that nobody else has.
    keys: the deleted keys of Redis, and entries of shared keys.
    left: what a second pass still found, by table and place. Empty if nothing is left.
    notes: what it could not do itself, such as rewriting the file of a Redis that does not allow it.
    """

    scope: str
    is_tenant: bool
    by: str = ""
    began_at: datetime
    ended_at: datetime
    turns: int
    rows: Mapping[str, int]
    keys: int
    left: Mapping[str, int]
    notes: tuple[str, ...] = ()
