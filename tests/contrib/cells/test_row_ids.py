"""The ids of memories and deliveries name their cell: an id means the same row before and after cells are set up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.sql.store import Store
from brainq.client.client import Client
from brainq.contracts.cell import RowId, parse_row, shown_row
from brainq.contracts.webhook import NewDelivery
from brainq.engine.brain.brain import Brain
from brainq.errors import InvalidInput
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.two_cells import TwoCells, two_cells, two_servers
from tests.support.pump import QUICK
from tests.support.server import RedisServer

BRAIN = Brain("cells", "offline:rules")
ROWS = 200


@pytest.fixture
def servers() -> Iterator[dict[str, RedisServer]]:
    with two_servers() as servers:
        yield servers


@pytest.fixture
def cells(servers: dict[str, RedisServer], tmp_path: Path) -> Iterator[TwoCells]:
    with two_cells(BRAIN, {name: server.url for name, server in servers.items()}, tmp_path) as both:
        for name, pump in both.pumps.items():
            fill(pump.wiring.store, name)
        yield both


def fill(store: Store, cell: str) -> None:
    """Write as many dead deliveries and memories as rows, each named after its cell and row."""
    rows = [NewDelivery(f"{cell}{n}", "https://example.com/", "turn.ended", "s1", "t", "{}") for n in range(1, ROWS)]
    with store.database.transaction() as connection:
        store.deliveries.plan(connection, rows, 0)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE deliveries SET state = 'dead'")


def alone(cells: TwoCells) -> Client:
    """A client of cell a from before there were cells."""
    servers = json.loads(cells.cells)["a"]
    return Client(load_settings(**{**QUICK, "redis_url": servers["redis"], "sql_url": servers["sql"]}), BRAIN)


def front(cells: TwoCells, *order: str) -> Client:
    """A client of both cells, in this order."""
    servers: dict[str, Any] = json.loads(cells.cells)
    return Client(load_settings(**{**QUICK, "cells": json.dumps({name: servers[name] for name in order})}), BRAIN)


def test_an_id_means_the_same_row_before_cells_with_cells_and_in_another_order(cells: TwoCells) -> None:
    with closing(alone(cells)) as client:
        noted = next(row for row in client.deliveries(limit=ROWS) if row.message_id == "a129")
    assert noted.row == 129
    with closing(front(cells, "a", "b")) as client:
        shown: dict[str, RowId] = {row.message_id: row.row for row in client.deliveries(limit=2 * ROWS)}
        assert (shown["a129"], shown["b129"], shown["b2"]) == ("a-129", "b-129", "b-2")
        assert client.send_again(noted.row)
        assert client.send_again(shown["b2"])
    with closing(front(cells, "b", "a")) as client:
        assert client.send_again(shown["a1"])
        assert client.send_again(shown["b129"])
        assert not client.send_again(shown["b129"]), "it is not dead any more"
    found = [row for pump in cells.pumps.values() for row in pump.wiring.store.deliveries.list(limit=ROWS)]
    assert {row.message_id for row in found if row.state != "dead"} == {"a129", "b2", "a1", "b129"}


def test_pages_follow_the_ids_and_a_cell_that_is_not_there_is_named(cells: TwoCells) -> None:
    with closing(front(cells, "a", "b")) as client:
        paged: list[str] = []
        after: RowId | None = None
        while page := client.deliveries(limit=150, after=after):
            paged += [row.message_id for row in page]
            after = page[-1].row
        assert sorted(paged) == sorted(f"{cell}{n}" for cell in ("a", "b") for n in range(1, ROWS))
        for act in (client.send_again, client.memories.forget):
            with pytest.raises(InvalidInput, match="cell 'c', which is not a cell of"):
                act("c-1")
    with closing(alone(cells)) as client, pytest.raises(InvalidInput, match="cell 'b', which is not a cell of"):
        client.send_again("b-2")


@pytest.mark.parametrize("shown", [0, -1, True, None, 1.0, "", "0", "b-", "b-0", "-1", "B-1", "b-1-1", "1 ", 2**63])
def test_what_is_no_id_is_refused(shown: Any) -> None:
    with pytest.raises(InvalidInput, match="must be the id of a row"):
        parse_row("memory", shown)


@pytest.mark.parametrize("cell", ["", "b", "cell7"])
def test_an_id_is_read_as_it_was_shown(cell: str) -> None:
    for row in (1, 129, 2**63 - 1):
        assert parse_row("row", shown_row(cell, row)) == (cell, row)
    assert parse_row("row", "129") == ("", 129)
