"""money_return.lua: what one cell has left of a budget is another's."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.support.money import counted, counter, granted, held


def test_what_is_left_is_taken_once_and_counts_as_spent(rig: Rig) -> None:
    granted(rig, 1)
    rig.client.hset(counter(rig), "spent", "0.4")
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["RETURNED", "0.6"]
    assert counted(rig, "granted", "spent", "returned") == [1, 1, 0.6]
    rig.owned()
    assert held(rig)[:2] == ["MONEY", "short"]


def test_a_call_in_flight_keeps_it(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    held(rig)
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["BUSY"]
    assert counted(rig, "spent", "returned") == [0, 0]


def test_nothing_is_left_of_what_is_not_there(rig: Rig) -> None:
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["RETURNED", "0"]
