"""Tables that a database gets when they are first needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, Table, event, inspect
from sqlalchemy.exc import OperationalError

from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.tables.on_demand import OnDemandTables

FEATURE = OnDemandTables()
one, other = (Table(name, FEATURE.metadata, Column("id", Integer, primary_key=True)) for name in ("one", "other"))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{tmp_path / 'any.db'}")
    yield engine
    engine.dispose()


@pytest.fixture
def statements(engine: Engine) -> list[str]:
    """What was sent to the database."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return seen


def test_one_is_made_by_itself_and_then_all(engine: Engine) -> None:
    FEATURE.make(engine, one)
    assert inspect(engine).get_table_names() == ["one"]
    assert (FEATURE.has(engine, one), FEATURE.has(engine, other)) == (True, False)
    FEATURE.make(engine)
    assert inspect(engine).get_table_names() == ["one", "other"]
    assert FEATURE.has(engine, other)


def test_what_was_found_is_not_asked_for_again(engine: Engine, statements: list[str]) -> None:
    FEATURE.make(engine)
    statements.clear()
    FEATURE.make(engine)
    FEATURE.make(engine, one)
    assert FEATURE.has(engine, other)
    assert statements == []


def test_what_another_process_made_is_found(engine: Engine, statements: list[str]) -> None:
    other_process = make_engine(str(engine.url))
    assert not FEATURE.has(engine, one)
    FEATURE.make(other_process)
    assert FEATURE.has(engine, one)
    FEATURE.make(engine)  # as two processes do that both find nothing
    assert "CREATE TABLE" not in "".join(statements)
    other_process.dispose()


def test_a_database_is_opened_with_all_of_them(tmp_path: Path) -> None:
    database = FEATURE.open(f"sqlite:///{tmp_path / 'home.db'}", pool_size=1, answer_s=2.0)
    assert inspect(database.engine).get_table_names() == ["one", "other"]
    database.engine.dispose()


def test_nothing_is_left_open_of_a_database_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disposed: list[Engine] = []

    def note(engine: Engine) -> None:
        disposed.append(engine)

    monkeypatch.setattr(Engine, "dispose", note)
    (tmp_path / "home.db").mkdir()
    with pytest.raises(OperationalError):
        FEATURE.open(f"sqlite:///{tmp_path / 'home.db'}", pool_size=1, answer_s=2.0)
    assert len(disposed) == 1
