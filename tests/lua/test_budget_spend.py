"""budget_spend.lua: tokens and money."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import TID, Rig


def test_the_same_spending_counts_once(rig: Rig) -> None:
    rig.active()
    assert rig.run("budget_spend", input=3, output=4, cost="0.5") == ["ADDED"]
    assert rig.run("budget_spend", input=3, output=4, cost="0.5") == ["ALREADY"]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["input_tokens"], budget["output_tokens"], budget["cost_usd"]) == ("3", "4", "0.5")


def test_a_budget_that_is_gone_does_not_come_back(rig: Rig) -> None:
    assert rig.run("budget_spend", input=3) == ["GONE"]
    assert not rig.client.exists(rig.names(TID)["budget"])


def test_what_was_used_is_only_ever_added(rig: Rig) -> None:
    rig.active()
    rig.run("budget_spend", input=30, output=40, cache_read=5, cost="0.5")
    less: dict[str, Any] = {"input": -1_000_000, "output": -1, "cache_read": -5, "cache_creation": -5, "cost": "-3.0"}
    assert rig.run("budget_spend", id="another", **less) == ["ADDED"]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["input_tokens"], budget["output_tokens"], budget["cost_usd"]) == ("30", "40", "0.5")
    assert (budget["cache_read_tokens"], budget.get("cache_creation_tokens")) == ("5", None)


def test_a_price_of_nothing_is_known(rig: Rig) -> None:
    rig.active()
    rig.run("budget_spend", input=3, cost="0.0")
    assert float(rig.client.hgetall(rig.names(TID)["budget"])["cost_usd"]) == 0
