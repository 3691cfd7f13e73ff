"""budget_spend.lua: tokens and money."""

from __future__ import annotations

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
