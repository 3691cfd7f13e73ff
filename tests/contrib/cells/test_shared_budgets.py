"""Budgets of all and of a brain hold over cells: each spends what home leased it, with a Redis and SQL of its own."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from brainq.client.client import Client
from brainq.contracts.budgets import MoneyRefusal
from brainq.engine.brain.brain import Brain
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.two import Sharers
from tests.integration.people.test_budgets import STEP_USD, price
from tests.support.pump import QUICK, Pump

pytestmark = pytest.mark.usefixtures("priced")


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)


@contextmanager
def home_away(pump: Pump) -> Generator[None]:
    for name, other in (("budget_leases", "gone"), ("gone", "budget_leases")):
        with pump.wiring.store.engine.begin() as connection:
            connection.exec_driver_sql(f"ALTER TABLE {name} RENAME TO {other}")
        if other == "gone":
            yield


def wish(pump: Pump, usd: float) -> tuple[Any, MoneyRefusal]:
    """A call of a cell that wants so much."""
    windows = pump.wiring.budgets.windows("in-b:1", "cells")
    return windows, MoneyRefusal("short", "all/day", windows[0].starts[1], usd, usd, 0, is_new=True)


def test_cells_together_stay_within_it_and_one_raise_lets_all_go_on(sharers: Sharers) -> None:
    for cell in "ab":
        sharers.send(cell, 8)
    sharers.work()
    assert 2 - 2 * STEP_USD < sharers.spent() <= 2 + 1e-6
    assert sharers.parked("a") + sharers.parked("b") == 16 - round(sharers.spent() / STEP_USD)
    brain = Brain("cells", "offline:rules")
    with closing(Client(load_settings(**{**QUICK, "cells": sharers.cells, **Sharers.more}), brain)) as front:
        assert front.budgets.raise_by("all", "day", 4, by="ann") == 6
        (state,) = front.budgets.list()
        assert (state.raised_usd, state.noticed_at) == (4, None)
        sharers.work()
        (state,) = front.budgets.list()
        assert (state.spent_usd, state.parked) == (pytest.approx(16 * STEP_USD), 0)


@pytest.mark.full
def test_a_cell_goes_on_within_its_lease_while_home_is_away_and_then_waits(sharers: Sharers) -> None:
    for cell in "ab":
        sharers.send(cell, 1)
    sharers.b.wiring.budgets.grant(*wish(sharers.b, 0.5))
    sharers.work()
    with home_away(sharers.a):
        for cell in "ab":
            sharers.send(cell, 3, begin=1)
        sharers.work()
        assert sharers.spent() == pytest.approx(4 * STEP_USD), "one call of a, and three of b, which was leased more"
        assert "waits for budget all/day" in str(sharers.b.client.handle("t-in-b-3-hello").explain())
        assert sharers.parked("b") == 0, "whether it is spent is not known"
    for cell in "ab":
        sharers.finish(cell, *(f"t-in-{cell}-{number}-hello" for number in range(4)))
    assert sharers.spent() == pytest.approx(8 * STEP_USD)


def test_what_a_cell_does_not_use_is_another_cells(sharers: Sharers) -> None:
    sharers.send("a", 9)
    sharers.work()  # one call less than there is money for; the rest is leased to a
    sharers.send("b", 1)
    sharers.work()
    assert sharers.parked("b") == 1
    sharers.look("b")
    sharers.look("a")
    sharers.look("a", later_s=61)
    sharers.look("a", later_s=61)  # once
    sharers.look("b")
    sharers.work()
    assert (sharers.parked("b"), sharers.spent()) == (0, pytest.approx(10 * STEP_USD))
    sharers.send("a", 1, begin=9)
    sharers.work()
    assert sharers.parked("a") == 1


@pytest.mark.full
def test_crowds_of_both_cells_that_are_billed_more_pass_it_by_one_call_at_most(sharers: Sharers) -> None:
    sharers.send("a", 20)
    sharers.send("b", 20)

    def work(cell: str) -> None:
        pump, idle = sharers.pumps[cell], 0
        while idle < 60:
            idle = 0 if pump.drain("brainq.turns") else idle + 1
            pump.sweep()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, "aaabbb"))
    assert 2 - 2 * STEP_USD < sharers.spent() <= 2 + STEP_USD
