"""Cells' shares of a model's limit in home's SQL, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import text

from brainq.adapters.sql.engine import transaction
from brainq.adapters.sql.repositories.limit_shares import LimitShares
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES, limit_shares
from brainq.contracts.limit_share import LEASE_S, USED_S, WHOLE, Share, ShareReport

MODEL = "openai:gpt"
HALF = WHOLE // 2


@pytest.fixture(autouse=True)
def _tables(store: Store) -> None:  # pyright: ignore[reportUnusedFunction]
    CELL_TABLES.make(store.engine)
    with transaction(store.engine) as connection:
        connection.execute(limit_shares.delete())


def busy(mark: int, share: int = 0, used: int = 0) -> ShareReport:
    return ShareReport(MODEL, mark, share, used, True)


def long_ago(store: Store, cell: str, seconds: float, column: str = "asked_at") -> None:
    """As if the cell had asked, or begun to ask, so long before."""
    ago = {
        "sqlite": f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{seconds} seconds')",
        "postgresql": f"clock_timestamp() - interval '{seconds} seconds'",
    }[store.engine.dialect.name]
    with transaction(store.engine) as connection:
        connection.execute(text(f"UPDATE limit_shares SET {column} = {ago} WHERE cell = '{cell}'"))


def test_cells_that_ask_at_once_are_never_given_more_than_the_whole(store: Store) -> None:
    shares = LimitShares(store.database, 2)
    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(partial(shares.ask, report=busy(1)), "abab"))
    assert sorted(share.share for share in given if share) == [HALF, HALF]
    assert {row.cell: row.held for row in shares.all()[MODEL]} == {"a": HALF, "b": HALF}


def test_a_look_that_another_has_overtaken_gets_nothing(store: Store) -> None:
    shares = LimitShares(store.database, 2)
    assert shares.ask("a", busy(7)) is not None
    assert shares.ask("a", busy(7)) is None
    assert shares.ask("a", busy(6)) is None
    assert shares.ask("a", busy(8)) is not None


def test_a_cell_that_asks_on_gets_what_a_dead_one_had(store: Store) -> None:
    shares = LimitShares(store.database, 2)
    assert shares.ask("a", busy(1)) == Share(HALF, HALF)
    assert shares.ask("b", busy(1)) == Share(HALF, HALF)
    long_ago(store, "a", LEASE_S + USED_S + 5)
    assert shares.ask("b", busy(2, HALF)) == Share(HALF, HALF)  # it has only begun to ask
    long_ago(store, "b", LEASE_S + 5, "asking_since")
    assert shares.ask("b", busy(3, HALF)) == Share(WHOLE, WHOLE)


def test_who_was_silent_begins_anew(store: Store) -> None:
    shares = LimitShares(store.database, 2)
    shares.ask("a", busy(1))
    long_ago(store, "a", LEASE_S + 5, "asking_since")
    assert shares.ask("a", busy(2)) == Share(WHOLE, WHOLE)
    long_ago(store, "a", LEASE_S + 5)
    assert shares.ask("a", busy(3)) == Share(HALF, HALF)
