"""Re-encrypt old values: those in the clear and those under a tenant's older keys. If the first line of the key file is
`clear`, all values are decrypted instead.

A value names its key, so a run that was killed continues where it stopped. A row is updated only if it still has the
value that was read, so a run may work next to live workers, in short transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.blobs import drop_unused
from brainq.adapters.sql.statements import upsert
from brainq.adapters.sql.tables import attachments, blobs, turns
from brainq.adapters.sql.tables.tenant_tables import KNOWLEDGE, TENANT_TABLES, row_key
from brainq.adapters.sql.tables.types import ContentText
from brainq.adapters.sql.text import terms_of
from brainq.contracts.encryption import MARK, OWNER_SEPARATOR, ContentKeyMissing, ReencryptProgress, key_id_of
from brainq.contracts.ids import tenant_of
from brainq.contrib.encryption.database import EncodedDatabase
from brainq.contrib.encryption.envelope import EnvelopeCodec
from brainq.runtime.observe.logs import logger

HEAD = len(MARK) + 12 + 1  # the length of the mark, the key's id and a colon
PAGE = 200
FILES_AT_ONCE = 4  # of some megabytes each
log = logger("brainq.store")
# An existing file is written to as well, so that a concurrent deletion waits.
_KEEP = upsert(blobs, ["sha256"], copied=("sha256",), changed={})
_FILES = select(attachments.c.turn_id, attachments.c.sha256, attachments.c.session_id)
_LINK = (attachments.c.turn_id == bindparam("of_turn"), attachments.c.sha256 == bindparam("was"))
_SAME_LINK = attachments.alias()
_HAS_BOTH = exists().where(_SAME_LINK.c.turn_id == bindparam("of_turn"), _SAME_LINK.c.sha256 == bindparam("becomes"))
_RENAME = update(attachments).where(*_LINK, ~_HAS_BOTH).values(sha256=bindparam("becomes"))
_UNLINK = delete(attachments).where(*_LINK)  # a turn that has the file under both names keeps one
_DATA = select(blobs.c.data).where(blobs.c.sha256 == bindparam("named"))
_WHOSE = select(turns.c.session_id).where(turns.c.turn_id == bindparam("turn"))
_SET_DATA = update(blobs).where(blobs.c.sha256 == bindparam("named"))


def content_columns(table: Table) -> list[Column[Any]]:
    """Return the columns whose text is encrypted."""
    return [column for column in table.columns if isinstance(column.type, ContentText)]


class Reencryption:
    """The re-encryption of every value of one database with its tenant's current key."""

    def __init__(self, database: EncodedDatabase, codec: EnvelopeCodec) -> None:
        self._raw = Database(database.engine)  # values as they are stored
        self._codec = codec
        self._keep = self._raw.pick(_KEEP)
        self._updates: dict[tuple[Table, tuple[str, ...]], Update] = {}
        self._gone = frozenset[str]()
        self._missing: ContentKeyMissing | None = None
        self._right()

    def tables(self) -> list[Table]:
        engine = self._raw.engine
        return [each.table for each in TENANT_TABLES if content_columns(each.table) and each.is_there(engine)]

    def left(self) -> Mapping[str, int]:
        """Return the number of rows and files that are not under a current key, by table, without tables that have
        none."""
        found = {table.name: self._raw.count(table, self._is_old(table)) for table in self.tables()}
        found[blobs.name] = self._raw.count(attachments, self._is_old_file())
        return {name: rows for name, rows in found.items() if rows}

    def in_clear(self) -> Mapping[str, int]:
        """Return the number of rows and files in the clear, by table."""
        found = {
            table.name: self._raw.count(table, or_(*(_is_clear(column) for column in content_columns(table))))
            for table in self.tables()
        }
        found[blobs.name] = self._raw.count(attachments, ~attachments.c.sha256.contains(OWNER_SEPARATOR))
        return {name: rows for name, rows in found.items() if rows}

    def run(self, watch: Callable[[ReencryptProgress], None] = lambda _: None) -> int:
        """Re-encrypt all rows and files. Returns how many were rewritten; `watch` is called after each page.

        Raises ContentKeyMissing at the end if some are under a key that is not in the file.
        """
        left, done = sum(self.left().values()), 0
        for table in self.tables():
            for page in self._pages(table):
                done += self._write(table, page)
                watch(ReencryptProgress(done, left, table.name))
        for files in self._file_pages():
            done += sum(self._write_file(file) for file in files)
            watch(ReencryptProgress(done, left, blobs.name))
        if self._missing is not None:
            raise self._missing
        return done

    def _pages(self, table: Table) -> Iterator[Sequence[Record]]:
        """Yield rows with an old value, in the order of their key."""
        named = [*row_key(table), *content_columns(table), *([table.c.session_id] if "session_id" in table.c else [])]
        old = select(*dict.fromkeys(named)).where(self._is_old(table))
        return self._raw.pages(old, row_key(table), PAGE)

    def _file_pages(self) -> Iterator[Sequence[Record]]:
        return self._raw.pages(_FILES.where(self._is_old_file()), row_key(attachments), FILES_AT_ONCE)

    def _write(self, table: Table, page: Sequence[Record]) -> int:
        found = [(row, values) for row in page if (values := self._values_of(table, row))]
        removed = self._being_removed()
        changed = [
            (row, values)
            for row, values in found
            if removed.isdisjoint(key_id_of(row[name]) for name in values if name in row)
        ]
        keys = [column.name for column in row_key(table)]
        with self._raw.transaction() as connection:
            return sum(
                connection.write(
                    self._update(table, tuple(values)),
                    {**{f"was_{name}": row[name] for name in {*keys, *values} - {"terms"}}, **values},
                )
                for row, values in changed
            )

    def _being_removed(self) -> frozenset[str]:
        """Return the keys that are being removed. Their values are not re-encrypted, because the copies would outlive
        the removal. Read this after the new values are made: a later removal covers the new key as well."""
        return frozenset(row["key_id"] for row in self._codec.keys.all() if row["state"] in ("leaving", "shredded"))

    def _values_of(self, table: Table, row: Record) -> dict[str, str]:
        """Return the re-encrypted values of a row. Returns an empty dict if a value cannot be decrypted with the keys
        available here."""
        try:
            return self._new_values(table, row)
        except ContentKeyMissing as missing:
            self._note(missing, table.name)
            return {}

    def _note(self, missing: ContentKeyMissing, where: str) -> None:
        if self._missing is None:
            self._missing = missing
            log.error("content is left as it is: its key is missing", table=where, why=str(missing))

    def _new_values(self, table: Table, row: Record) -> dict[str, str]:
        session_id = row["session_id"] if "session_id" in row else self._session_of(row["turn_id"])
        wanted = self._key_of(session_id)
        values = {
            column.name: self._codec.encode(session_id, self._codec.decode(value))
            for column in content_columns(table)
            if (value := row[column.name]) and key_id_of(value) != wanted and not self._is_gone(value)
        }
        if values and table in KNOWLEDGE:
            values["terms"] = "" if wanted else " ".join(terms_of(values["text"]))
        return values

    def _write_file(self, file: Record) -> int:
        """Re-encrypt a file. Returns 1 if it was rewritten, or 0 if it cannot be decrypted here."""
        try:
            return self._rename_file(file)
        except ContentKeyMissing as missing:
            self._note(missing, blobs.name)
            return 0

    def _rename_file(self, file: Record) -> int:
        """Rewrite a file under the name that its encryption requires: tenants may share a file in the clear, and the
        name of an encrypted file contains its tenant."""
        name, session_id = file["sha256"], file["session_id"]
        found = self._raw.first(_DATA, {"named": name})
        if found is None or self._is_gone(bytes(found["data"][:HEAD]).decode("latin-1")):
            return 0
        stored = bytes(found["data"])
        plain, is_encrypted, _ = name.partition(OWNER_SEPARATOR)
        data = self._codec.decode_bytes(stored) if is_encrypted else stored
        becomes, value = plain, data
        if self._codec.writes:
            becomes = f"{plain}{OWNER_SEPARATOR}{tenant_of(session_id)}"
            value = self._codec.encode_bytes(session_id, data)
        if is_encrypted and stored[len(MARK) : HEAD - 1].decode("latin-1") in self._being_removed():
            return 0
        with self._raw.transaction() as connection:
            if becomes == name:
                return connection.write(_SET_DATA, {"named": name, "data": value})
            connection.write(self._keep, {"sha256": becomes, "data": value})
            link = {"of_turn": file["turn_id"], "was": name}
            connection.write(_RENAME, {**link, "becomes": becomes})
            connection.write(_UNLINK, link)
            drop_unused(connection, [name])
        return 1

    def _update(self, table: Table, names: tuple[str, ...]) -> Update:
        if (table, names) not in self._updates:
            same = {*(column.name for column in row_key(table)), *names} - {"terms"}
            where = [table.c[name] == bindparam(f"was_{name}", type_=table.c[name].type) for name in sorted(same)]
            self._updates[table, names] = update(table).where(*where)
        return self._updates[table, names]

    def _key_of(self, session_id: str) -> str | None:
        return self._codec.current(tenant_of(session_id)).key_id if self._codec.writes else None

    def _session_of(self, turn_id: str) -> str:
        found = self._raw.first(_WHOSE, {"turn": turn_id})
        return "" if found is None else str(found["session_id"])

    def _is_gone(self, value: str) -> bool:
        """Return whether the value's key was removed. Such a value cannot be read, and is left unchanged."""
        return value[len(MARK) : HEAD - 1] in self._gone if value.startswith(MARK) else False

    def _is_old(self, table: Table) -> ColumnElement[bool]:
        return or_(*(self._is_old_text(column) for column in content_columns(table)))

    def _is_old_text(self, column: Column[Any]) -> ColumnElement[bool]:
        begins = func.substr(column, 1, HEAD)
        if not self._codec.writes:
            return and_(column.like(f"{MARK}%"), begins.not_in([f"{MARK}{key}:" for key in self._gone] or [""]))
        return and_(column.is_not(None), column != "", begins.not_in(self._right()))

    def _is_old_file(self) -> ColumnElement[bool]:
        has_owner = attachments.c.sha256.contains(OWNER_SEPARATOR)
        if not self._codec.writes:
            return has_owner
        under = [head.encode() for head in self._right()]
        data = select(func.substr(blobs.c.data, 1, HEAD)).where(blobs.c.sha256 == attachments.c.sha256)
        return or_(~has_owner, data.correlate(attachments).scalar_subquery().not_in(under))

    def _right(self) -> list[str]:
        """Return the prefixes of values that need no change: those under a current key, and unreadable ones."""
        rows = self._codec.keys.all()
        self._gone = frozenset(row["key_id"] for row in rows if row["state"] == "shredded")
        # The newest key of each tenant: its creator may have died before it marked the previous key as old.
        current = {row["tenant"]: row["key_id"] for row in rows if row["state"] == "current"}
        return [f"{MARK}{key}:" for key in (*current.values(), *self._gone)] or [""]


def _is_clear(column: Column[Any]) -> ColumnElement[bool]:
    return and_(column.is_not(None), column != "", column.not_like(f"{MARK}%"))
