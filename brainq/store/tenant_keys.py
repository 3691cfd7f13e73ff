"""The table of tenants' keys: made, found, replaced, wrapped anew, and removed for good.

It has a database of its own, or connections of its own to the content's: a key is committed before the first value
under it is written, whatever transaction that is in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Integer, bindparam, func, literal, select, update

from brainq.contracts.encryption import TenantKey
from brainq.store.database import Database, Record
from brainq.store.engine import BUSY_TIMEOUT_S, make_engine
from brainq.store.statements import insert_or_ignore
from brainq.store.tables.key_tables import KEY_TABLES, tenant_keys
from brainq.store.tables.types import IdText

CONNECTIONS = 2  # a key is asked for once in ten seconds
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
    """The `tenant_keys` table, which the first key makes. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url, pool_size=CONNECTIONS)
        self._db = Database(self._engine)
        self._add = self._db.pick(_ADD)

    def newest(self, tenant: str) -> Record | None:
        """Of the highest generation, whatever its state."""
        return self._db.first(_NEWEST, {"of_tenant": tenant}) if self._is_there() else None

    def get(self, key_id: str) -> Record | None:
        return self._db.first(_GET, {"sought": key_id}) if self._is_there() else None

    def all(self) -> Sequence[Record]:
        """By tenant and generation."""
        return self._db.all(_ALL, {}) if self._is_there() else ()

    def listed(self) -> list[TenantKey]:
        """As operators see them."""
        return [TenantKey(**{name: row[name] for name in TenantKey.__dataclass_fields__}) for row in self.all()]

    def add(self, *, key_id: str, tenant: str, generation: int, operator_key: str, wrapped: str) -> bool:
        """False where the tenant has a key of this generation: another process was first. Outlives a power cut."""
        KEY_TABLES.make(self._engine)
        values = {"key_id": key_id, "tenant": tenant, "generation": generation, "operator_key": operator_key}
        added = self._db.write(self._add, {**values, "wrapped": wrapped, "state": "current"}, durably=True) == 1
        if added:
            self._db.write(_OLDER, {"of_tenant": tenant, "below": generation})
        return added

    def rewrap(self, key_id: str, was: str, operator_key: str, wrapped: str) -> bool:
        """False where it is not wrapped by `was` any more."""
        values = {"sought": key_id, "was": was, "operator_key": operator_key, "wrapped": wrapped}
        return self._db.write(_REWRAP, values, durably=True) == 1

    def leave(self, tenant: str) -> int:
        """No new value is to be under the tenant's keys; how many there are."""
        if not self._is_there():
            return 0
        self._db.write(_LEAVE, {"of_tenant": tenant}, durably=True)
        return int((self._db.first(_LEAVING, {"of_tenant": tenant}) or {"keys": 0})["keys"])

    def stay(self, tenant: str) -> None:
        """Those that were leaving are not removed."""
        if self._is_there():
            self._db.write(_STAY, {"of_tenant": tenant}, durably=True)

    def shred(self, tenant: str) -> int:
        """Those that were leaving are gone for good, from a SQLite file's free pages and log, too; how many."""
        if not self._is_there():
            return 0
        gone = self._db.write(_SHRED, {"of_tenant": tenant}, durably=True)
        self._scrub()
        return gone

    def forget_name(self, tenant: str) -> None:
        """Of its keys that are gone the rows stay, for values in backups, and do not say whose they were."""
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
