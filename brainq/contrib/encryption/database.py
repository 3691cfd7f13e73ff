"""A database with encrypted content: a codec encodes the columns `ContentText` and `ContentBytes` on their way to the
driver, and decodes them on their way back.

Repositories do not notice. To encode a value, the codec needs its tenant: it is derived from the statement's session,
or from the row if an update names only a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Dialect, Engine, Executable, Table, bindparam, select
from sqlalchemy.types import TypeEngine

from brainq.adapters.sql.database import UNREADABLE, Database, Parameters
from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.prepared import Prepared, Record
from brainq.adapters.sql.tables import blobs, turns
from brainq.adapters.sql.tables.types import ContentBytes, ContentText
from brainq.adapters.sql.text import sql_text
from brainq.contracts.encryption import (
    OWNER_SEPARATOR,
    SHREDDED,
    ContentCodec,
    ContentKeyMissing,
    ContentShredded,
    KeyPlace,
)
from brainq.contrib.encryption.envelope import EnvelopeCodec
from brainq.runtime.observe.logs import logger

# Connections for session look-ups. A thread that holds a connection must not wait for another one of the same pool.
CONNECTIONS = 2
KNOWN_TURNS = 4096
KNOWN_UNREADABLE = 4096
_OWNERS = ("session_id", "session", "turn_id", "turn")
"""The parameters that name the owner of content, in the order of preference: a session, or else a turn."""
log = logger("brainq.store")


class EncodedDatabase(Database):
    """A Database with a codec. Thread-safe."""

    def __init__(self, engine: Engine, keys: KeyPlace) -> None:
        super().__init__(engine)
        self.codec = self._codec = EnvelopeCodec(keys)
        self._sessions = RowSessions(engine)
        self._stored = Database(engine)  # This reads and writes values as they are stored.
        self._unreadable = set[tuple[str, str]]()  # rows and keys that were logged

    def row_sealer(self, table: Table) -> Callable[[Sequence[Record]], Sequence[Record]] | None:
        contents = [column.name for column in table.columns if isinstance(column.type, ContentText)]
        codec = self._codec
        if not contents:
            return None

        def seal(rows: Sequence[Record]) -> Sequence[Record]:
            return [
                {
                    **row,
                    **{
                        name: codec.encode(row["session_id"], sql_text(row[name]))
                        for name in contents
                        if row[name] is not None
                    },
                }
                for row in rows
            ]

        return seal

    def readable(self, statement: Executable, parameters: Parameters, named: str) -> Sequence[Record]:
        contents = [
            (column.key, column.type)
            for column in getattr(statement, "exported_columns", ())
            if isinstance(column.type, ContentText)
        ]
        found = self._stored.all(statement, parameters)
        return [self._read_or_left(row, contents, f"{named} {row[named]}") for row in found]

    def _read_or_left(self, row: Record, contents: Sequence[tuple[str, TypeEngine[Any]]], name: str) -> Record:
        try:
            read = {column: content_of(self._codec, kind, row[column]) for column, kind in contents if row[column]}
        except ContentKeyMissing as missing:
            if (name, missing.key_id) not in self._unreadable:
                if len(self._unreadable) >= KNOWN_UNREADABLE:
                    self._unreadable.clear()
                self._unreadable.add((name, missing.key_id))
                log.error("a row waits for its key; the others go on", row=name, why=str(missing))
            return {**row, **{column: None for column, _ in contents}, UNREADABLE: str(missing)}
        return {**row, **read}

    def close(self) -> None:
        self._sessions.close()
        self._codec.close()

    def _prepare(self, statement: Executable, names: tuple[str, ...], *, many: bool = False) -> Prepared:
        return EncodedStatement(statement, self.engine.dialect, names, many=many, codec=self._codec, of=self._sessions)


class EncodedStatement(Prepared):
    """A prepared statement that encodes the content of its values and decodes the content of its rows."""

    def __init__(
        self,
        statement: Executable,
        dialect: Dialect,
        names: Sequence[str],
        *,
        many: bool,
        codec: ContentCodec,
        of: RowSessions,
    ) -> None:
        super().__init__(statement, dialect, names, many=many)
        self._codec = codec
        self._sessions = of
        self._table: Table | None = getattr(statement, "table", None)
        binds: dict[str, Any] = {name: bind for bind, name in self._compiled.bind_names.items()}
        self._texts = [name for name in names if name in binds and isinstance(binds[name].type, ContentText)]
        self._bytes = [name for name in names if name in binds and isinstance(binds[name].type, ContentBytes)]
        self._owner = next((name for name in _OWNERS if name in names), "")
        if self._texts and (not self._owner or (self._owner.startswith("turn") and self._table is None)):
            raise KeyError(f"a statement that writes content needs one of the parameters {', '.join(_OWNERS)}")
        self._opened = [(name, kind) for name, kind in self._columns if isinstance(kind, ContentText | ContentBytes)]

    def for_driver(self, given: Mapping[str, Any]) -> tuple[str, Any]:
        if (self._texts or self._bytes) and any(given[name] for name in (*self._texts, *self._bytes)):
            given = self._sealed(given)
        return super().for_driver(given)

    def records(self, cursor: Any) -> list[Record]:
        found = super().records(cursor)
        if self._opened:
            for row in cast("list[dict[str, Any]]", found):
                for name, kind in self._opened:
                    # An unencrypted file may begin like an encrypted value; its name then contains no tenant.
                    is_file = isinstance(kind, ContentBytes)
                    if row[name] and not (is_file and OWNER_SEPARATOR not in row["sha256"]):
                        row[name] = opened(self._codec, kind, row[name])
        return found

    def _sealed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(given)
        if self._table is blobs:
            _, separator, tenant = str(given["sha256"]).partition(OWNER_SEPARATOR)
            if separator:
                values["data"] = self._codec.encode_bytes(tenant, bytes(given["data"]))
            return values
        session_id = self._session_of(given)
        for name in self._texts:
            if values[name]:
                values[name] = self._codec.encode(session_id, sql_text(values[name]))
        return values

    def _session_of(self, given: Mapping[str, Any]) -> str:
        owner = str(given[self._owner])
        if self._owner.startswith("session") or self._table is None:
            return owner
        return self._sessions.of(self._table, owner)


def opened(codec: ContentCodec, kind: TypeEngine[Any], value: Any) -> Any:
    """Decode a value. In lists, a value whose key is missing becomes a note of that."""
    try:
        return content_of(codec, kind, value)
    except ContentKeyMissing as missing:
        if isinstance(kind, ContentText) and kind.unread == "line":
            return f"[encrypted under key {missing.key_id}, which is not here]"
        if isinstance(kind, ContentText) and kind.unread == "absent":
            return None
        raise


def content_of(codec: ContentCodec, kind: TypeEngine[Any], value: Any) -> Any:
    """Decode a value. If its key was removed, returns the column's placeholder. Raises ContentKeyMissing, and
    ContentShredded if the column has no placeholder."""
    try:
        if isinstance(kind, ContentBytes):
            return codec.decode_bytes(bytes(value))
        return codec.decode(value)
    except ContentShredded:
        if isinstance(kind, ContentText) and kind.unread != "required":
            return None if kind.unread in ("null", "absent") else SHREDDED
        raise


class RowSessions:
    """A cache of the sessions of rows that an update names by their turn. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = make_engine(engine.url.render_as_string(hide_password=False), pool_size=CONNECTIONS)
        self._db = Database(self._engine)
        self._known = lru_cache(KNOWN_TURNS)(self._find)

    def of(self, table: Table, turn_id: str) -> str:
        """Return the session of a row, or "" if a power cut lost both the row and its turn."""
        try:
            return self._known(table, turn_id)
        except LookupError:
            return ""

    def _find(self, table: Table, turn_id: str) -> str:
        for each in (table, turns):
            if "session_id" in each.c:
                asked = select(each.c.session_id).where(each.c.turn_id == bindparam("turn")).limit(1)
                found = self._db.first(asked, {"turn": turn_id})
                if found is not None:
                    return str(found["session_id"])
        raise LookupError(turn_id)

    def close(self) -> None:
        self._engine.dispose()
