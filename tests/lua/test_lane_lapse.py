"""lane_lapse.lua: the lanes of a parked call."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_a_sweeper_finds_it_at_once(rig: Rig) -> None:
    rig.run("lane_take", holder="1", lanes=[rig.keys.lane("A")])
    assert rig.run("lane_lapse", holder="1") == ["LAPSED"]
    assert rig.run("lane_lapsed")[2:] == ["1"]


def test_a_call_that_wants_its_lanes_again_keeps_them(rig: Rig) -> None:
    lane = rig.keys.lane("A")
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[lane])
    rig.run("lane_lapse", holder="1")
    assert rig.run("lane_take", holder="1", lanes=[lane]) == ["GRANTED"]
    assert rig.run("lane_lapsed")[2:] == []


def test_who_holds_none_is_absent(rig: Rig) -> None:
    assert rig.run("lane_lapse", holder="1") == ["ABSENT"]
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[rig.keys.lane("A")])
    assert rig.run("lane_lapse", holder="2") == ["ABSENT"]
