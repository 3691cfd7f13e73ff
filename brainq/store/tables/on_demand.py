"""Tables that a database gets when they are first needed, not by a migration.

A build that knows nothing of them goes on working on the same database. So each feature that came after the baseline
migration has a metadata of its own here, and its repositories ask whether the tables are there, or make them.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import Engine, MetaData, Table, inspect

from brainq.store.database import Database
from brainq.store.engine import make_engine, transaction
from brainq.store.tables.types import metadata

_ADVISORY_LOCK = 0x62726169_6E710002  # "brainq" and a 2: Postgres' IF NOT EXISTS fails where two make a table at once


class OnDemandTables:
    """The tables of one feature. Thread-safe: what was once found in a database is not asked for again.

    Define them on `metadata`. No method may be called inside a transaction: SQLite would wait for that one.
    """

    def __init__(self) -> None:
        self.metadata = MetaData(naming_convention=metadata.naming_convention)
        self._found: WeakKeyDictionary[Engine, set[str]] = WeakKeyDictionary()

    def has(self, engine: Engine, table: Table) -> bool:
        """Whether the table is in this database; asks it until the table is there."""
        found = self._found.setdefault(engine, set())
        if table.name in found:
            return True
        if is_there := inspect(engine).has_table(table.name):
            found.add(table.name)
        return is_there

    def open(self, url: str, *, pool_size: int, answer_s: float) -> Database:
        """A database that has them all, on connections of its own: home's, for a process of another cell.

        answer_s   as of `make_engine`

        Raises what SQLAlchemy raises while the database is away; then nothing is left open.
        """
        engine = make_engine(url, pool_size=pool_size, answer_s=answer_s)
        try:
            self.make(engine)
        except BaseException:
            engine.dispose()
            raise
        return Database(engine)

    def make(self, engine: Engine, *tables: Table) -> None:
        """Make these tables where they are missing; without any, all. Safe from several processes at once."""
        wanted = tables or self.metadata.sorted_tables
        found = self._found.setdefault(engine, set())
        if found.issuperset(names := [table.name for table in wanted]):
            return
        with transaction(engine) as connection:
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            self.metadata.create_all(connection, wanted)
        found.update(names)
