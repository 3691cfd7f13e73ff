"""Budgets that cells share, and stops: their writer dies between any two writes, and does it again."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, select

from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.stops import RedisStops
from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.repositories.shared_budgets import HomeBudgets, SharedBudgets
from brainq.adapters.sql.repositories.stops import Stops
from brainq.adapters.sql.store import make_database
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_leases
from brainq.app.wiring import doorbells
from brainq.contracts.budget_lease import LeaseWish
from brainq.contracts.budgets import Budget, GrantedWindow, MoneyRefusal
from brainq.contracts.stop import checked_stop
from brainq.engine.people.stops import StopDesk
from brainq.runtime.settings.deployment import Settings
from tests.support.crashes import crash_everywhere
from tests.support.pump import sqlite_url

DAY = Budget(scope="all", per="day", usd=10.0)
SENDS = checked_stop("tool", "send_email")
OTHER = checked_stop("brain", "shop", mode="forbid")


@dataclass
class Shared:
    """Cell b's budgets and home's."""

    own: SharedBudgets
    home: HomeBudgets
    home_engine: Engine

    def refuse(self, wanted: float, *, is_new: bool = False) -> MoneyRefusal:
        return MoneyRefusal("short", "all/day", 0, wanted, wanted + 0.25, 0, is_new=is_new)

    def window(self) -> GrantedWindow:
        return self.own.windows(0)[0]

    def lease(self) -> tuple[float, float]:
        """What home has leased to cell b, and got back from it."""
        with self.home_engine.connect() as connection:
            rows = connection.execute(select(budget_leases).where(budget_leases.c.cell == "b")).mappings().all()
        return (rows[0]["leased_usd"], rows[0]["returned_usd"]) if rows else (0.0, 0.0)

    def seen(self) -> object:
        row = self.window()
        return row.granted_usd, row.leased_usd, row.returned_usd, self.lease()

    def require_order(self) -> None:
        """What Redis may spend is leased; what home has got back is no longer this cell's."""
        row = self.window() if self.own.windows(0) else GrantedWindow("all", "day", 0, 0.0, 0.0, is_spent=False)
        leased, returned = self.lease()
        assert row.granted_usd <= row.leased_usd <= leased
        assert returned <= row.returned_usd


@contextmanager
def shared() -> Generator[Shared]:
    with TemporaryDirectory() as folder:
        engines = list[Engine]()
        for name in ("home", "own"):
            (Path(folder) / name).mkdir()
            engines.append(make_engine(sqlite_url(Path(folder) / name)))
            BUDGET_TABLES.make(engines[-1])
        home = HomeBudgets(make_database(engines[0], None), ())
        notices: Any = SimpleNamespace(plan=print)
        own = SharedBudgets(make_database(engines[1], None), notices, cell="b", home=lambda: home)
        yield Shared(own, home, engines[0])
        for engine in engines:
            engine.dispose()


def test_a_lease_is_homes_before_it_is_the_cells_and_the_cells_before_it_is_spent() -> None:
    writes = crash_everywhere(
        shared, lambda cell: cell.own.grant("all", DAY, cell.refuse(1.0)), Shared.seen, Shared.require_order
    )
    assert writes >= 3


def test_what_is_given_back_is_the_cells_no_more_before_home_hears_of_it() -> None:
    @contextmanager
    def leased() -> Generator[Shared]:
        with shared() as cell:
            assert cell.own.grant("all", DAY, cell.refuse(1.0)) is not None
            yield cell

    def give_back(cell: Shared) -> None:
        grant = cell.own.use_up(cell.window())
        cell.own.give_back(cell.window(), grant.granted_usd - 1.0)

    assert crash_everywhere(leased, give_back, Shared.seen, Shared.require_order) >= 3


def test_a_refused_lease_is_marked_and_what_it_had_stays_its_own() -> None:
    with shared() as cell:
        assert cell.own.grant("all", DAY, cell.refuse(1.0)) is not None
        before = cell.lease()[0]
        assert cell.home.lease("a", "all", DAY, 0, LeaseWish(0.0, 10.0 - before, 10.0 - before)) is not None
        assert cell.own.grant("all", DAY, cell.refuse(9.0)) is None
        assert cell.window().is_spent
        assert cell.lease()[0] == before, "and asks for its own share again without losing it"
        assert cell.home.free("all", DAY, 0) == pytest.approx(0.0)


def test_a_cell_that_asks_again_keeps_what_it_was_leased() -> None:
    """It died before it had written that down."""
    with shared() as cell:
        leased = cell.home.lease("b", "all", DAY, 0, LeaseWish(0.0, 3.0, 3.0))
        assert cell.own.grant("all", DAY, cell.refuse(1.0)) is not None
        assert cell.window().leased_usd == cell.lease()[0] == leased


@dataclass
class Stopping:
    desk: StopDesk
    switch: RedisStops
    rows: Stops

    def in_sql(self) -> set[str]:
        return {stop.field for stop in self.rows.standing()}

    def seen(self) -> object:
        return self.in_sql(), self.switch.fields(), {stop.field for stop in self.switch.in_force()}


@pytest.fixture
def stopping(redis_url: str) -> Any:
    client = make_client(redis_url)
    scripts = Scripts(client, Keys("bq:"), doorbells(Settings(redis_url=None)))

    @contextmanager
    def world() -> Generator[Stopping]:
        client.flushdb()
        with TemporaryDirectory() as folder:
            engine = make_engine(sqlite_url(Path(folder)))
            rows, switch = Stops(make_database(engine, None)), RedisStops(scripts, lambda: None)
            yield Stopping(StopDesk(rows, switch), switch, rows)
            engine.dispose()

    yield world
    client.flushdb()
    client.close()


def test_a_stop_is_in_sql_before_anybody_meets_it(stopping: Any) -> None:
    def between(world: Stopping) -> None:
        assert world.switch.fields() <= world.in_sql()

    assert crash_everywhere(stopping, lambda world: world.desk.stop(SENDS), Stopping.seen, between) == 3


def test_a_stop_is_lifted_in_sql_first(stopping: Any) -> None:
    """Else a sweeper would bring it back after its caller was told that it is lifted."""

    @contextmanager
    def stopped() -> Generator[Stopping]:
        with stopping() as world:
            for stop in (SENDS, OTHER):
                world.desk.stop(stop)
            yield world

    def between(world: Stopping) -> None:
        assert world.in_sql() <= world.switch.fields()

    assert crash_everywhere(stopped, lambda world: world.desk.lift(SENDS), Stopping.seen, between) == 2


def test_what_redis_lost_and_what_it_has_too_much_are_put_right_wherever_the_sweeper_died(stopping: Any) -> None:
    @contextmanager
    def differing() -> Generator[Stopping]:
        with stopping() as world:
            world.switch.put([OTHER])
            world.rows.put(SENDS)
            yield world

    assert crash_everywhere(differing, lambda world: world.desk.heal(), Stopping.seen) >= 3


def test_a_stop_that_comes_while_a_sweeper_compares_stays(stopping: Any) -> None:
    with stopping() as world:
        comes = iter([OTHER])

        class Rows:
            def standing(self) -> Any:
                found = world.rows.standing()
                for stop in comes:
                    world.desk.stop(stop)
                return found

            def forget_ended(self) -> int:
                return world.rows.forget_ended()

        rows: Any = Rows()
        assert StopDesk(rows, world.switch).heal() == 0
        assert world.switch.fields() == world.in_sql() == {OTHER.field}
        assert StopDesk(rows, world.switch).heal() == 0
