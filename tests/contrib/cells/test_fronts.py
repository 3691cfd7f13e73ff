"""Two cells: tenants are served by their own, found from any front, listed together, and one's outage is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from brainq.adapters.sql.database import Database
from brainq.client.async_client import AsyncClient
from brainq.client.connection import cells_of
from brainq.contracts.answers import cells_away
from brainq.contracts.build import Ramp
from brainq.contracts.cell import Placement
from brainq.contrib.cells.placements import Directory
from brainq.engine.brain.brain import Brain
from brainq.errors import CellUnreachable, InvalidInput, TenantMoved, TurnNotFound
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.two_cells import NAMES, TwoCells, tenant_in, two_cells, two_servers
from tests.support.builds import announce
from tests.support.pump import QUICK
from tests.support.server import RedisServer

IN_A, IN_B = tenant_in("a"), tenant_in("b")
BRAIN = Brain("cells", "offline:rules")


@pytest.fixture
def servers() -> Iterator[dict[str, RedisServer]]:
    with two_servers() as servers:
        yield servers


@pytest.fixture
def cells(servers: dict[str, RedisServer], tmp_path: Path) -> Iterator[TwoCells]:
    with two_cells(BRAIN, {name: server.url for name, server in servers.items()}, tmp_path) as both:
        yield both


def test_each_turn_is_done_in_its_tenants_cell_and_found_from_a_front_that_knows_nothing(cells: TwoCells) -> None:
    with closing(cells.front()) as client:
        here, there = client.submit(f"{IN_A}1", "Go."), client.submit(f"{IN_B}1", "Go.", request_key="key-1")
        old = client.submit(f"{IN_B}2", "Go.", turn_id="chosen-id")
    assert (here.turn_id[:2], there.turn_id[:2]) == ("a-", "b-")
    assert [pump.drain() > 0 for pump in cells.pumps.values()] == [True, True]
    with closing(cells.front()) as front:
        assert front.handle(here.turn_id).result(1).session_id == f"{IN_A}1"
        assert front.handle(old.turn_id).result(1).ending == "completed"
        assert front.find("key-1").turn_id == there.turn_id
        assert front.find(there.turn_id[:12]).session_id == f"{IN_B}1"
        assert next(front.handle(there.turn_id).events()).seq == 1
        assert front.submit(f"{IN_B}1", "Go.", request_key="key-1").turn_id == there.turn_id
        with pytest.raises(TurnNotFound):
            front.handle("nobody-has-this")
        assert {turn.turn_id for turn in front.turns()} == {here.turn_id, there.turn_id, old.turn_id}
        assert [turn.turn_id for turn in front.turns(session=f"{IN_B}2")] == ["chosen-id"]
        assert [one.session_id for one in front.sessions(session_prefixes=[IN_A])] == [f"{IN_A}1"]
        assert front.schedule(f"{IN_B}daily", f"{IN_B}r", "Go.", in_s=600).name == f"{IN_B}daily"
        assert [one.name for one in front.schedules()] == [front.find_schedule(f"{IN_B}daily").name]
        with pytest.raises(InvalidInput, match="begins with"):
            front.schedule("daily", f"{IN_B}r", "Go.", in_s=600)


def test_one_cells_redis_is_gone_and_the_other_goes_on(cells: TwoCells, servers: dict[str, RedisServer]) -> None:
    with closing(cells.front()) as client:
        lost = client.submit(f"{IN_B}1", "Go.")
        client.submit(f"{IN_A}1", "Go.")
        assert cells_away(client.turns()) == ()
        servers["b"].stop()
        for number in range(3):
            done = client.submit(f"{IN_A}{number + 2}", "Go.")
            cells.pumps["a"].drain()
            assert done.result(5).ending == "completed"
        page = client.turns()
        assert cells_away(page) == cells_away(client.sessions()) == ("b",)
        assert {turn.session_id for turn in page} == {f"{IN_A}{number}" for number in (1, 2, 3, 4)}
        assert cells_away(client.turns(session_prefixes=[IN_A])) == ()
        with pytest.raises(CellUnreachable, match="'b'"):
            list(client.iterate_turns())
        report = client.bulk("cancel", "newer=1h", dry_run=True)
        assert (report.matched, report.cells_away) == (4, ("b",)), "the report names what it lacks"
        client.ping()
        assert client.handle(lost.turn_id).session_id == f"{IN_B}1"  # SQL has it


def test_builds_are_of_all_cells_and_a_ramp_and_a_release_reach_each(
    cells: TwoCells, servers: dict[str, RedisServer]
) -> None:
    builds = {name: pump.wiring.state.builds for name, pump in cells.pumps.items()}
    for pump in cells.pumps.values():
        for build, digest in (("1.4", "d01d"), ("1.5", "0e00")):
            announce(pump.wiring, build, digest)
    with closing(cells.front()) as client:
        assert client.ramp_build("1.5", 10).cells == ("a", "b")
        assert [each.ramp() for each in builds.values()] == [Ramp("1.5", "1.4", 1_000)] * 2
        assert client.versions().ramp == "10 % of sessions begin on 1.5, the others on 1.4"
        key = f"{IN_B}1", client.submit(f"{IN_B}1", "Go.").turn_id
        pinned: dict[Any, Any] = {"pin": "d01d", "pin_build": "1.4"}
        cells.pumps["b"].wiring.state.redis.hset(cells.pumps["b"].wiring.state.keys.turn(*key), mapping=pinned)
        old = client.versions().builds[0]
        assert (old.needed_in, old.workers) == ({"a": 0, "b": 1}, {"coordinator": 2})
        released = client.release_build("1.4", "1.5")
        assert (released.brains, released.cells, released.cells_away) == (("shop",), ("a", "b"), ())
        assert [each.released() for each in builds.values()] == [{"d01d": "0e00"}] * 2
        assert "is empty in every cell" in client.versions().builds[0].says
        servers["b"].stop()
        found = client.versions()
        assert (found.cells_away, found.builds[0].says[-31:]) == (("b",), "did not answer, so keep its workers"[-31:])
        ended = client.ramp_build("1.5", 0)
        assert (ended.cells, ended.cells_away, builds["a"].ramp()) == (("a",), ("b",), None)


def test_what_asks_a_cell_whose_sql_is_gone_is_told_which_and_how_to_ask_again(cells: TwoCells) -> None:
    with closing(cells.front()) as client:
        done = client.submit(f"{IN_B}1", "Go.")
        with cells.pumps["b"].wiring.store.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE turns RENAME TO gone")
        with pytest.raises(CellUnreachable, match="cell 'b'") as away:
            client.submit(f"{IN_B}1", "Go on.", request_key="key-1")
        assert (away.value.cell, away.value.request_key) == ("b", "key-1")
        for ask in (done.request, lambda: client.turns(session=f"{IN_B}1")):
            with pytest.raises(CellUnreachable, match="cell 'b'"):
                ask()
        assert client.submit(f"{IN_A}1", "Go.").created


def test_an_event_loop_follows_a_turn_in_its_cell_and_over_a_move(cells: TwoCells) -> None:
    directory = Directory(Database(cells.pumps["a"].wiring.store.engine))

    async def follow() -> tuple[str, str, list[int]]:
        async with AsyncClient(load_settings(**{**QUICK, "cells": cells.cells}), BRAIN) as client:
            there = await client.submit(f"{IN_B}1", "Go.")
            moved = await client.submit(f"{IN_A}1", "Go.")
            assert directory.flip(IN_A, "b", 2)
            with closing(cells.front()) as other:
                other.submit(f"{IN_A}1", "Go.", turn_id=moved.turn_id)
            cells.pumps["a"].wiring.state.redis.flushdb()
            with cells.pumps["a"].wiring.store.engine.begin() as connection:
                connection.exec_driver_sql("DELETE FROM turns")
            cells.pumps["b"].drain()
            results = [await handle.result(10) for handle in (there, moved)]
            return results[0].ending, results[1].ending, [event.seq async for event in moved.events()]

    one, other, numbers = asyncio.run(follow())
    assert (one, other) == ("completed", "completed")
    assert numbers == list(range(1, len(numbers) + 1))


def test_known_tenants_go_on_while_the_directory_is_away(cells: TwoCells) -> None:
    home = cells.pumps["a"].wiring.store.engine
    with closing(cells.front()) as client:
        client.submit(f"{IN_B}1", "Go.")
        with home.begin() as connection:
            connection.exec_driver_sql("DROP TABLE tenant_cells")
        assert client.submit(f"{IN_B}2", "Go.").turn_id.startswith("b-")
        with pytest.raises(CellUnreachable, match="directory"):
            client.submit(f"{IN_A}1", "Go.")


def test_a_stale_front_follows_and_what_it_submits_is_one_turn(
    cells: TwoCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that its tenant has left says so; what was drawn for the submit stays."""
    directory = Directory(Database(cells.pumps["a"].wiring.store.engine))
    with closing(cells.front()) as client:
        client.submit(f"{IN_A}1", "Go.")
        assert directory.flip(IN_A, "b", 2)
        old = cells_of(client).of_name("a").people.intake
        tried: list[str] = []

        def submit(request: Any, files: Any = ()) -> Any:
            tried.append(request.turn_id)
            raise TenantMoved(IN_A, "b", 2)

        monkeypatch.setattr(old, "submit", submit)
        moved = client.submit(f"{IN_A}1", "Go on.")
        assert tried == [moved.turn_id]
        assert cells.pumps["b"].wiring.store.turns.get(moved.turn_id) is not None
        assert cells_of(client).of_session(f"{IN_A}7").settings.cell == "b"
        cells.pumps["b"].drain()
        assert moved.result(5).ending == "completed"


def test_a_handle_kept_over_a_move_is_followed_to_the_new_cell(cells: TwoCells) -> None:
    directory = Directory(Database(cells.pumps["a"].wiring.store.engine))
    with closing(cells.front()) as client, closing(cells.front()) as other:
        handle = client.submit(f"{IN_A}1", "Go.")
        assert directory.flip(IN_A, "b", 2)
        again = other.submit(f"{IN_A}1", "Go.", turn_id=handle.turn_id)
        assert again.turn_id == handle.turn_id
        with cells.pumps["a"].wiring.store.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM turns")
        assert handle.request().user_message == "Go."
        assert handle.request() == again.request()
    assert directory.placement(IN_A) == Placement("b", 2)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    came=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 6)), min_size=1, max_size=12),
    limit=st.integers(1, 5),
    sort=st.sampled_from(["newest", "oldest", "cost"]),
)
@example(came=[("a", 1), ("b", 1), ("a", 1), ("b", 1)], limit=1, sort="newest")
def test_pages_over_cells_leave_nothing_out_and_repeat_nothing(
    cells: TwoCells, came: list[tuple[str, int]], limit: int, sort: Any
) -> None:
    for pump in cells.pumps.values():
        with pump.wiring.store.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM turns")
    client = cells.pumps["a"].client
    came = sorted(came, key=lambda each: each[1])
    for number, (cell, second) in enumerate(came):
        store = cells.pumps[cell].wiring.store
        turn_id = client.submit(f"{tenant_in(cell)}{number}", "Go.").turn_id
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE turns SET accepted_at = ?, ended_at = accepted_at, cost_usd = ?, state = 'completed', "
                "ending = 'completed' WHERE turn_id = ?",
                (f"2026-05-01 00:00:0{second}.000", float(second % 3), turn_id),
            )
    whole = [turn.turn_id for turn in client.turns(limit=100, sort=sort)]
    assert len(whole) == len(set(whole)) == len(came)
    paged: list[str] = []
    while page := client.turns(limit=limit, sort=sort, after=paged[-1] if paged else None):
        paged += [turn.turn_id for turn in page]
    assert paged == whole
