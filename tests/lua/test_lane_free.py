"""lane_free.lua: leaving all lines."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_whoever_is_first_everywhere_now_holds_its_lanes(rig: Rig) -> None:
    a, b = rig.keys.lane("A"), rig.keys.lane("B")
    for holder, lanes in (("1", [a, b]), ("2", [a]), ("3", [a, b]), ("4", [b])):
        rig.run("lane_take", holder=holder, lanes=lanes)
    assert rig.run("lane_free", holder="1") == ["FREED", "2"]
    assert rig.run("lane_free", holder="2") == ["FREED", "3"]
    assert rig.run("lane_free", holder="3") == ["FREED", "4"]
    assert rig.run("lane_free", holder="4") == ["FREED"]
    assert rig.client.keys("*{lanes}*") == []


def test_leaving_a_line_from_its_middle_grants_nothing(rig: Rig) -> None:
    lane = rig.keys.lane("A")
    for holder in "123":
        rig.run("lane_take", holder=holder, lanes=[lane])
    assert rig.run("lane_free", holder="2") == ["FREED"]
    assert rig.client.lrange(lane, 0, -1) == ["1", "3"]


def test_a_stranger_frees_nothing(rig: Rig) -> None:
    assert rig.run("lane_free", holder="nobody") == ["FREED"]
