"""Tokens of HTTP callers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Float, bindparam, func, null, or_, select, update

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_into
from brainq.adapters.sql.tables import tokens
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.rows import TokenRow

USED_EVERY_S = 60.0  # a write for each use would cost more than the use
_T = tokens.c
_HERE = _T.token_id == bindparam("token")
_WHOLE = select(tokens, utc_now().label("now"))
_GET = _WHOLE.where(_HERE)
_ALL = _WHOLE.order_by(_T.row.desc()).limit(bindparam("most"))
_REVOKE = update(tokens).where(_HERE).values(revoked_at=func.coalesce(_T.revoked_at, utc_now()))
_USED = (
    update(tokens)
    .where(_HERE, or_(_T.last_used_at.is_(None), _T.last_used_at <= utc_after(bindparam("ago", type_=Float()))))
    .values(last_used_at=utc_now())
)


class Tokens:
    """The `tokens` table. Revoking is final; the row stays as evidence of access."""

    def __init__(self, database: Database) -> None:
        self._db = database
        insert = insert_into(database.dialect, tokens)
        self._endless = insert.values(expires_at=null()).inline()
        self._timed = insert.values(expires_at=utc_after(bindparam("seconds", type_=Float()))).inline()

    def add(
        self,
        token_id: str,
        secret_hash: str,
        name: str,
        sessions: Sequence[str],
        verbs: Sequence[str],
        expires_in_s: float | None,
    ) -> None:
        """Insert a token. Raises IntegrityError if the id exists."""
        values: dict[str, object] = {
            "token_id": token_id,
            "secret_hash": secret_hash,
            "name": name,
            "sessions_json": json.dumps(list(sessions)),
            "verbs_json": json.dumps(list(verbs)),
        }
        if expires_in_s is None:
            self._db.write(self._endless, values)
        else:
            self._db.write(self._timed, {**values, "seconds": expires_in_s})

    def get(self, token_id: str) -> TokenRow | None:
        found = self._db.first(_GET, {"token": token_id})
        return None if found is None else _row(found)

    def list(self, limit: int = 1000) -> list[TokenRow]:
        """Return tokens, newest first, including expired and revoked ones."""
        return [_row(found) for found in self._db.all(_ALL, {"most": limit})]

    def revoke(self, token_id: str) -> bool:
        """Revoke a token. Idempotent. Returns False if it is unknown."""
        return self._db.put(_REVOKE, {"token": token_id}) == 1

    def used(self, token_id: str) -> bool:
        """Record a use. Returns False, and writes nothing, if a use was recorded in the last minute."""
        return self._db.put(_USED, {"token": token_id, "ago": -USED_EVERY_S}) == 1


def _row(found: Record) -> TokenRow:
    return TokenRow(
        token_id=found["token_id"],
        name=found["name"],
        sessions=tuple(json.loads(found["sessions_json"])),
        verbs=tuple(json.loads(found["verbs_json"])),
        created_at=found["created_at"],
        expires_at=found["expires_at"],
        last_used_at=found["last_used_at"],
        revoked_at=found["revoked_at"],
        read_at=found["now"],
        secret_hash=found["secret_hash"],
    )
