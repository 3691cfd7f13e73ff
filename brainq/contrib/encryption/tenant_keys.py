"""The table of tenants' keys: create, find, replace, rewrap and remove them.

It uses its own database, or its own connections to the content's database, because a key must be committed before the
first value under it, whatever transaction that value is written in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import (
    Column,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    bindparam,
    func,
    literal,
    select,
    update,
)

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import BUSY_TIMEOUT_S, make_engine
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_or_ignore
from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import IdText, SafeText, UtcTimestamp, utc_now
from brainq.contracts.encryption import TenantKey

CONNECTIONS = 2  # each key is read once in ten seconds
KEY_TABLES = OnDemandTables()
# One row per key, kept for ever. `wrapped` is empty if the key was removed.
tenant_keys = Table(
    "tenant_keys",
    KEY_TABLES.metadata,
    Column("key_id", IdText, nullable=False),
    Column("tenant", IdText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("operator_key", IdText, nullable=False),
    Column("wrapped", SafeText, nullable=False),  # base64
    Column("state", IdText, nullable=False),  # current, old, leaving, shredded
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("key_id"),
    UniqueConstraint("tenant", "generation"),
)
_K = tenant_keys.c
_TENANT = _K.tenant == bindparam("of_tenant", type_=IdText())
_NEWEST = select(tenant_keys).where(_TENANT).order_by(_K.generation.desc()).limit(1)
_GET = select(tenant_keys).where(_K.key_id == bindparam("sought", type_=IdText()))
_ADD = insert_or_ignore(tenant_keys)
_ALL = select(tenant_keys).order_by(_K.tenant, _K.generation)
_OLDER = (
    update(tenant_keys)
    .where(_TENANT, _K.state == "current", _K.generation < bindparam("below", type_=Integer()))
    .values(state="old")
)
_REWRAP = (
    update(tenant_keys)
    .where(_K.key_id == bindparam("sought", type_=IdText()), _K.operator_key == bindparam("was", type_=IdText()))
    .where(_K.state != "shredded")
)
_LEAVE = update(tenant_keys).where(_TENANT, _K.state != "shredded").values(state="leaving")
_STAY = update(tenant_keys).where(_TENANT, _K.state == "leaving").values(state="old")
_LEAVING = select(func.count().label("keys")).where(_TENANT, _K.state == "leaving")
_FORGET_NAME = (
    update(tenant_keys).where(_TENANT, _K.state == "shredded").values(tenant=literal("erased ", IdText()) + _K.key_id)
)
_SHRED = update(tenant_keys).where(_TENANT, _K.state == "leaving").values(state="shredded", wrapped="")


class TenantKeys:
    """The `tenant_keys` table, which is created with the first key. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url, pool_size=CONNECTIONS)
        self._db = Database(self._engine)
        self._add = self._db.pick(_ADD)

    def newest(self, tenant: str) -> Record | None:
        """Return the tenant's key of the highest generation, whatever its state."""
        return self._db.first(_NEWEST, {"of_tenant": tenant}) if self._is_there() else None

    def get(self, key_id: str) -> Record | None:
        return self._db.first(_GET, {"sought": key_id}) if self._is_there() else None

    def all(self) -> Sequence[Record]:
        """Return all keys, ordered by tenant and generation."""
        return self._db.all(_ALL, {}) if self._is_there() else ()

    def listed(self) -> list[TenantKey]:
        """Return all keys in the form shown to operators."""
        return [TenantKey(**{name: row[name] for name in TenantKey.__dataclass_fields__}) for row in self.all()]

    def add(self, *, key_id: str, tenant: str, generation: int, operator_key: str, wrapped: str) -> bool:
        """Add a key durably. Returns False if another process was first with this generation."""
        KEY_TABLES.make(self._engine)
        values = {"key_id": key_id, "tenant": tenant, "generation": generation, "operator_key": operator_key}
        added = self._db.write(self._add, {**values, "wrapped": wrapped, "state": "current"}, durably=True) == 1
        if added:
            self._db.write(_OLDER, {"of_tenant": tenant, "below": generation})
        return added

    def rewrap(self, key_id: str, was: str, operator_key: str, wrapped: str) -> bool:
        """Replace a key's wrapping. Returns False if it is no longer wrapped by `was`."""
        values = {"sought": key_id, "was": was, "operator_key": operator_key, "wrapped": wrapped}
        return self._db.write(_REWRAP, values, durably=True) == 1

    def leave(self, tenant: str) -> int:
        """Mark the tenant's keys as leaving, so that no new value uses them. Returns how many there are."""
        if not self._is_there():
            return 0
        self._db.write(_LEAVE, {"of_tenant": tenant}, durably=True)
        return int((self._db.first(_LEAVING, {"of_tenant": tenant}) or {"keys": 0})["keys"])

    def stay(self, tenant: str) -> None:
        """Undo `leave`: keep the keys that were leaving."""
        if self._is_there():
            self._db.write(_STAY, {"of_tenant": tenant}, durably=True)

    def shred(self, tenant: str) -> int:
        """Remove the leaving keys for good, also from a SQLite file's free pages and log. Returns how many."""
        if not self._is_there():
            return 0
        gone = self._db.write(_SHRED, {"of_tenant": tenant}, durably=True)
        self._scrub()
        return gone

    def forget_name(self, tenant: str) -> None:
        """Remove the tenant's name from the rows of its removed keys. The rows stay for values in backups."""
        if self._is_there() and self._db.write(_FORGET_NAME, {"of_tenant": tenant}, durably=True):
            self._scrub()

    def close(self) -> None:
        self._engine.dispose()

    def _scrub(self) -> None:
        if self._db.dialect == "sqlite":
            path = (self._engine.url.database or "").removeprefix("file:").partition("?")[0]
            with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return
        with closing(self._engine.raw_connection()) as borrowed:
            cursor: Any = borrowed.cursor()
            cursor.execute(f"VACUUM {tenant_keys.name}")

    def _is_there(self) -> bool:
        return KEY_TABLES.has(self._engine, tenant_keys)
