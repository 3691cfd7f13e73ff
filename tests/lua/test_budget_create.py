"""budget_create.lua: a budget of its own."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_it_is_made_once_and_goes_by_itself(rig: Rig) -> None:
    assert rig.run("budget_create", max_steps=3) == ["CREATED"]
    assert rig.run("budget_create", max_steps=9) == ["EXISTS"]
    budget = rig.names(TID)["budget"]
    assert rig.client.hget(budget, "steps_max") == "3"
    assert 0 < rig.client.pttl(budget) <= 50_000
