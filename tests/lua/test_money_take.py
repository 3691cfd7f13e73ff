"""money_take.lua and money_settle.lua: calls after a turn's end."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.support.money import counted, granted, money


def test_a_call_after_the_turn_is_taken_once_and_settled_once(rig: Rig) -> None:
    ticket = "bq:{money}:call:t:judge"
    taken = {"ticket": ticket, "money": money(rig)}
    assert rig.run("money_take", **taken)[:2] == ["MONEY", "short"]
    granted(rig, 1)
    assert rig.run("money_take", **taken) == ["GO"]
    assert counted(rig, "spent", "held", "n") == [0.1, 0, 0]
    assert rig.run("money_settle", ticket=ticket, usd="0.25") == ["SETTLED"]
    assert counted(rig, "spent") == [0.25]


def test_a_call_after_the_turn_whose_worst_case_is_not_known_is_over_at_once(rig: Rig) -> None:
    granted(rig, 1)
    assert rig.run("money_take", ticket="bq:{money}:call:c1", money=money(rig, blind=True), keep_ms=1000) == ["GO"]
    assert counted(rig, "n", "blind", "held", "spent") == [0, 0, 0, 0.1]
