"""A pooled SQLite connection that one transaction gave back and the next one took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, select
from sqlalchemy.exc import IntegrityError

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.engine import make_engine

METADATA = MetaData()
NOTES = Table("notes", METADATA, Column("id", Integer, primary_key=True), Column("text", Text))
INSERT = "INSERT INTO notes (id, text) VALUES (?, ?)"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    engine = make_engine(f"sqlite:///{tmp_path / 'any.db'}", pool_size=1)
    METADATA.create_all(engine)
    yield Database(engine)
    engine.dispose()


class Collected:
    """A value of a statement; while it is bound, what another thread still had of its own transaction is collected."""

    def __init__(self, held: list[Transaction]) -> None:
        self._held = held

    def __conform__(self, _protocol: object) -> str:
        self._held.clear()
        return "bound"


def ended_well(database: Database) -> Transaction:
    with database.transaction() as ended:
        ended.write_text(INSERT, [(1, "a"), (2, "b")])
    return ended


def ended_by_an_error(database: Database) -> Transaction:
    with database.transaction() as first:
        first.write_text(INSERT, [(1, "a"), (2, "b")])
    with pytest.raises(IntegrityError), database.transaction() as ended:
        ended.write_text(INSERT, [(1, "taken")])
    return ended


@pytest.mark.parametrize("end", [ended_well, ended_by_an_error])
def test_a_transaction_that_ended_touches_no_statement_of_the_next_one(
    end: Callable[[Database], Transaction], database: Database
) -> None:
    held = [end(database)]
    with database.transaction() as connection:
        connection.write_text(INSERT, [(3, Collected(held)), (4, "d"), (5, "e")])
    assert held == []
    assert [row["id"] for row in database.all(select(NOTES.c.id).order_by(NOTES.c.id), {})] == [1, 2, 3, 4, 5]
