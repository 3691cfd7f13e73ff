"""Calls after a turn's end are held to budgets: their worst case is taken, and what they have cost takes its place."""

from __future__ import annotations

from typing import Any, cast

import pytest

from brainq import ProviderError, ScriptedProvider
from brainq.contracts.model import TokenUsage
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import fails, says


class Told:
    """Budgets that note what they are asked. `full` is the one that allows nothing."""

    def __init__(self, full: str = "", held: bool = True) -> None:
        self.full = full
        self.held = held
        self.taken: list[tuple[Any, ...]] = []
        self.settled: list[float] = []

    def windows(self, session_id: str, brain: str) -> tuple[str, ...]:
        return (session_id,) if self.held else ()

    def reserve(self, call_id: str, *asked: Any) -> str:
        self.taken.append(asked)
        return self.full

    def settle(self, call_id: str, usd: float) -> None:
        self.settled.append(usd)


def price(provider: str, model: str, usage: TokenUsage) -> float:
    return usage.output_tokens / 1000


def ask(budgets: Told, reply: Any) -> None:
    model = AuxiliaryModel(ScriptedProvider([], auxiliary=lambda _: reply), "m", None, cast(Any, budgets), "b")
    with Allowance(price).activate():
        model.ask("judge", "Judge.", "text", timeout_s=5, session_id="acme:1", turn_id="t")


def test_the_worst_case_is_taken_and_the_bill_takes_its_place() -> None:
    budgets = Told()
    ask(budgets, says("Well.", usage=TokenUsage(output_tokens=30)))
    assert budgets.taken == [("acme:1", "b", 1.0, 1.0)]
    assert budgets.settled == [0.03]


def test_one_that_is_not_allowed_is_not_asked() -> None:
    budgets = Told(full="budget all/day")
    with pytest.raises(ProviderError, match="budget all/day is spent") as refused:
        ask(budgets, says("Well."))
    assert (refused.value.kind, budgets.settled) == ("spent", [])


def test_one_that_failed_is_settled_and_one_that_none_holds_asks_nothing() -> None:
    budgets, free = Told(), Told(held=False)
    with pytest.raises(ProviderError):
        ask(budgets, fails())
    assert budgets.settled == [0.0]
    ask(free, says("Well.", usage=TokenUsage(output_tokens=30)))
    assert (free.taken, free.settled) == ([], [])
