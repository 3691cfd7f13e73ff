"""The schema: migrated once, from several processes, to what the tables say."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from brainq.adapters.sql import engine as engine_module
from brainq.adapters.sql.engine import make_engine, transaction
from brainq.adapters.sql.migrations.upgrade import (
    HEAD,
    VERSION_TABLE,
    alembic_config,
    is_in_metadata,
    revision,
    upgrade,
)
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import metadata
from brainq.errors import SetupError
from lab.upgrade.used import every_on_demand

UPGRADE = "import sys; from brainq.adapters.sql.store import Store; Store.open(sys.argv[1]).close(); print('ok')"


@pytest.fixture
def store_url(sql_url: str) -> str:
    """Of a database of its own: these tests change the schema."""
    Store.open(sql_url).close()
    return sql_url


def test_upgrade_makes_the_tables_once(sql_url: str) -> None:
    engine = make_engine(sql_url)
    try:
        assert revision(engine) is None
        assert upgrade(engine) is True
        assert upgrade(engine) is False
        assert revision(engine) == HEAD
        assert set(_tables(engine)) == {*metadata.tables, VERSION_TABLE}
    finally:
        engine.dispose()


def test_the_migrated_schema_is_what_the_tables_say(store: Store) -> None:
    with store.engine.connect() as connection:
        options = {
            "version_table": VERSION_TABLE,
            "include_object": is_in_metadata,
            "compare_type": True,
            "compare_server_default": True,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_the_schema_can_be_taken_back_whole(store: Store) -> None:
    with transaction(store.engine) as connection:
        command.downgrade(alembic_config(connection), "base")

    assert _tables(store.engine) == [VERSION_TABLE]


def test_a_sqlite_that_cannot_search_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None: ...

    engine_module.require_fts5.cache_clear()

    def connect(_: str) -> Without:
        return Without()

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(SetupError, match=r"built without FTS5.*BRAINQ_SQL_URL=postgresql"):
        make_engine(f"sqlite:///{tmp_path / 'a.db'}")


def test_head_is_the_newest_revision(store: Store) -> None:
    with store.engine.connect() as connection:
        assert ScriptDirectory.from_config(alembic_config(connection)).get_heads() == [HEAD]


def test_processes_may_upgrade_at_once(sql_url: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", UPGRADE, sql_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in processes]

    assert [out for out, _ in said] == [b"ok\n"] * 2, said


def test_a_failed_upgrade_leaves_nothing(sql_url: str) -> None:
    engine = make_engine(sql_url)
    try:
        with transaction(engine) as connection:
            connection.execute(text("CREATE TABLE calls (x INTEGER)"))  # in the way of the third table
        with pytest.raises(Exception, match="calls"):
            upgrade(engine)
        assert inspect(engine).get_table_names() == ["calls"]
    finally:
        engine.dispose()


def test_opening_without_migrating_needs_a_current_schema(sql_url: str) -> None:
    with pytest.raises(SetupError, match="brainq db upgrade"):
        Store.open(sql_url, migrate=False)
    Store.open(sql_url).close()
    Store.open(sql_url, migrate=False).close()


def test_a_newer_schema_is_refused(store: Store, store_url: str) -> None:
    with transaction(store.engine) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))

    with pytest.raises(SetupError, match="9999"):
        Store.open(store_url)


@pytest.mark.parametrize("older", ["0001", "0012"])
def test_a_schema_of_before_the_first_release_is_refused_with_the_remedy(
    store: Store, store_url: str, older: str
) -> None:
    with transaction(store.engine) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{older}'"))

    with pytest.raises(SetupError, match="set BRAINQ_SQL_URL to a new database"):
        Store.open(store_url)


def test_an_up_to_date_sqlite_store_loads_neither_alembic_nor_another_databases_dialect(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'brainq.db'}"
    Store.open(url).close()
    code = (
        "import sys; import brainq.adapters.sql.prune; from brainq.adapters.sql.store import Store;"
        "Store.open(sys.argv[1]).close();"
        "print([name for name in sys.modules if name.startswith(('alembic', 'sqlalchemy.dialects.postgresql'))])"
    )
    said = subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


def _tables(engine: Engine) -> list[str]:
    """Without those that keep SQLite's full-text index."""
    return [name for name in inspect(engine).get_table_names() if "_fts" not in name]


def test_what_a_feature_adds_is_tables_of_its_own_and_an_older_build_finds_its_own_as_they_were(store: Store) -> None:
    def schema() -> dict[str, list[str]]:
        inspector = inspect(store.engine)
        return {name: [str(column) for column in inspector.get_columns(name)] for name in metadata.tables}

    before = schema()
    features = every_on_demand()
    for tables in features:
        tables.make(store.engine)
    names = [name for tables in features for name in tables.metadata.tables]
    assert len(names) >= 6
    assert len({*names, *metadata.tables}) == len(names) + len(metadata.tables), "each has a name of its own"
    assert {*names} <= {*_tables(store.engine)}
    assert (schema(), revision(store.engine)) == (before, HEAD)
