"""A tenant's budgets move with it: what was spent counts, a raise stays, and turns that are parked for money go on."""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Any

import pytest

from brainq.client.client import Client
from brainq.client.connection import cells_of
from brainq.contrib.cells.move import MoveRun, Undo
from brainq.engine.brain.brain import Brain
from brainq.errors import MoveFailed
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.two import TENANT, Spenders, TwoCells
from tests.integration.people.test_budgets import price
from tests.support.pump import QUICK


def spent(two: TwoCells, cell: str) -> dict[str, tuple[float, float]]:
    """What each of the cell's budgets has of money and raises."""
    found = two.pumps[cell].wiring.budgets.list()
    return {state.scope: (round(state.spent_usd, 4), state.raised_usd) for state in found if state.spent_usd}


@pytest.mark.parametrize("goes_back", [False, pytest.param(True, marks=pytest.mark.full)])
def test_what_was_spent_and_raised_is_there_and_a_parked_turn_goes_on(
    spenders: Spenders, monkeypatch: pytest.MonkeyPatch, goes_back: bool
) -> None:
    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)
    two = spenders
    for number in range(3):
        two.submit("a", f"acme:ann:{number}", "hello")
        two.a.drain()
    parked = "t-acme-ann-2-hello"
    assert two.state("a", "acme:ann:2", parked) == "parked"
    two.a.wiring.budgets.raise_by(f"tenant {TENANT}", "day", 0.05, "ann")  # too little
    for _ in range(2):
        two.a.sweep()
        two.a.drain()
    assert two.mover().move(TENANT, "b").counts["budgets"] == 2
    cell = "b"
    if goes_back:
        two.mover().move(TENANT, "a")
        cell = "a"
    two.pumps[cell].sweep()
    two.pumps[cell].drain()
    assert two.state(cell, "acme:ann:2", parked) == "parked", "what was spent before the move counts after it"
    two.pumps[cell].wiring.budgets.raise_by(f"tenant {TENANT}", "day", 0.1, "ann")
    two.pumps[cell].sweep()
    two.finish(cell, parked)
    after = spent(two, cell)
    assert after[f"tenant {TENANT}"] == (pytest.approx(0.6, abs=0.03), pytest.approx(0.15))
    assert after["user acme:ann:"] == (pytest.approx(0.6, abs=0.5), 0.0), "what was granted ahead counts as spent"
    assert spent(two, "b" if goes_back else "a") == {}


@pytest.mark.full
@pytest.mark.parametrize("is_undone", [False, True])
def test_a_raise_while_a_parked_turn_is_copied_lets_it_go_on(
    spenders: Spenders, monkeypatch: pytest.MonkeyPatch, is_undone: bool
) -> None:
    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)
    two, parked = spenders, "t-acme-ann-2-hello"
    for number in range(3):
        two.submit("a", f"acme:ann:{number}", "hello")
        two.a.drain()
    assert two.state("a", "acme:ann:2", parked) == "parked"

    compare: Any = vars(MoveRun)["_compare"]

    def compare_later(run: MoveRun) -> str:
        two.a.wiring.budgets.raise_by(f"tenant {TENANT}", "day", 0.3, "ann")
        if is_undone:
            raise Undo("for this test")
        return compare(run)

    monkeypatch.setattr(MoveRun, "_compare", compare_later)
    with pytest.raises(MoveFailed) if is_undone else nullcontext():
        two.mover().move(TENANT, "b")
    two.finish("a" if is_undone else "b", parked)


def test_a_raise_of_a_front_that_knows_nothing_of_the_move_is_the_new_cells(spenders: Spenders) -> None:
    two = spenders
    with closing(
        Client(load_settings(**{**QUICK, "cells": two.cells, **Spenders.more}), Brain("cells", "offline:rules"))
    ) as front:
        assert front.budgets.raise_by(f"tenant {TENANT}", "day", 0.1) == pytest.approx(0.6)
        tenants: Any = cells_of(front)
        two.mover().move(TENANT, "b")
        tenants._tenants._quiet_until = float("inf")  # it asks the directory no more
        assert front.budgets.raise_by(f"user {TENANT}ann:", "day", 1) == pytest.approx(10)
        assert front.budgets.raise_by(f"tenant {TENANT}", "day", 0.1) == pytest.approx(0.7)
