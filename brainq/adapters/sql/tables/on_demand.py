"""Tables that are created when they are first needed, instead of by a migration.

Builds without these tables can therefore use the same database. Each feature that was added after the baseline
migration has its own metadata here, and its repositories check for the tables or create them.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import Engine, MetaData, Table, inspect

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import make_engine, transaction
from brainq.adapters.sql.tables.types import metadata

# The key is "brainq" and a 2. The lock is needed because Postgres' IF NOT EXISTS fails if two processes create a table
# at once.
_ADVISORY_LOCK = 0x62726169_6E710002


class OnDemandTables:
    """The tables of one feature. Thread-safe; a table that was found once is not looked for again.

    Define the tables on `metadata`. Do not call a method inside a transaction, because SQLite would wait for it.
    """

    def __init__(self) -> None:
        self.metadata = MetaData(naming_convention=metadata.naming_convention)
        self._found: WeakKeyDictionary[Engine, set[str]] = WeakKeyDictionary()

    def has(self, engine: Engine, table: Table) -> bool:
        """Return whether the table exists in this database."""
        found = self._found.setdefault(engine, set())
        if table.name in found:
            return True
        if is_there := inspect(engine).has_table(table.name):
            found.add(table.name)
        return is_there

    def open(self, url: str, *, pool_size: int, answer_s: float) -> Database:
        """Open a database with its own connections and create the tables, such as the home cell's database for a
        process of another cell.

        answer_s   as for `make_engine`

        Raises SQLAlchemy's error if the database does not answer; nothing is left open then.
        """
        engine = make_engine(url, pool_size=pool_size, answer_s=answer_s)
        try:
            self.make(engine)
        except BaseException:
            engine.dispose()
            raise
        return Database(engine)

    def make(self, engine: Engine, *tables: Table) -> None:
        """Create the given tables, or all, if they are missing. Several processes may do so at once."""
        wanted = tables or self.metadata.sorted_tables
        found = self._found.setdefault(engine, set())
        if found.issuperset(names := [table.name for table in wanted]):
            return
        with transaction(engine) as connection:
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            self.metadata.create_all(connection, wanted)
        found.update(names)
