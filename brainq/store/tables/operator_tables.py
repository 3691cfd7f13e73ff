"""Tables of what operators do.

They are in a metadata of their own, and are made when something is first written to them, not by a migration: the
previous build goes on working on the same database.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, Engine, Index, MetaData, PrimaryKeyConstraint, Table, inspect

from brainq.store.engine import transaction
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, metadata, row_column, utc_now

_ADVISORY_LOCK = 0x62726169_6E710003  # "brainq" and a 3: Postgres' IF NOT EXISTS fails where two make a table at once
operator_metadata = MetaData(naming_convention=metadata.naming_convention)

# What is paused or forbidden by name. A row is there as long as the stop is: who lifted it is in the audit log.
stops = Table(
    "stops",
    operator_metadata,
    Column("kind", IdText, nullable=False),  # brain, tool, model, server, tenant
    Column("name", IdText, nullable=False),
    Column("tenant", IdText, nullable=False),  # "": of all
    Column("mode", IdText, nullable=False),  # pause, forbid
    Column("stopped_by", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("since", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ends_at", UtcTimestamp),
    PrimaryKeyConstraint("kind", "name", "tenant"),
)

# What people and tokens did: a row is added when it is done, and never changed.
acts = Table(
    "acts",
    operator_metadata,
    row_column(),
    Column("at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("who", SafeText, nullable=False),
    Column("source", IdText, nullable=False),  # http, cli, client
    Column("act", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),
    Column("subject", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
)

Index(None, acts.c.turn_id)

Index(None, acts.c.session_id)


class OperatorTables:
    """Whether the tables of one database are there. Thread-safe: what is found once stays found."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._there: set[str] = set()

    def has(self, table: Table) -> bool:
        """Asks the database until the table is there."""
        if table.name not in self._there:
            with self._engine.connect() as connection:
                if not inspect(connection).has_table(table.name):
                    return False
            self._there.add(table.name)
        return True

    def make(self, table: Table) -> None:
        """Make the table where it is missing. Safe from several processes at once."""
        if self.has(table):
            return
        with transaction(self._engine) as connection:
            _lock(connection)
            operator_metadata.create_all(connection, [table])
        self._there.add(table.name)


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
