"""money_settle.lua: what a call after a turn's end has cost takes the place of what was taken for it, once."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.support.money import counted, counter, granted, money

TICKET = "bq:{money}:call:t:judge"


def test_it_is_settled_once(rig: Rig) -> None:
    granted(rig, 1)
    rig.run("money_take", ticket=TICKET, money=money(rig))
    assert rig.run("money_settle", ticket=TICKET, usd="0.04") == ["SETTLED"]
    assert rig.run("money_settle", ticket=TICKET, usd="0.9") == ["ALREADY"]
    assert counted(rig, "spent", "held") == [0.04, 0]


def test_a_window_that_is_gone_is_not_made_anew(rig: Rig) -> None:
    granted(rig, 1)
    rig.run("money_take", ticket=TICKET, money=money(rig))
    rig.client.delete(counter(rig))
    rig.run("money_settle", ticket=TICKET, usd="0.04")
    assert not rig.client.exists(counter(rig))
