"""lane_take.lua: lines of calls."""

from __future__ import annotations

from tests.lua.rig import Rig


def take(rig: Rig, holder: str, *lanes: str) -> str:
    return str(rig.run("lane_take", holder=holder, lanes=[rig.keys.lane(lane) for lane in lanes])[0])


def test_all_lanes_or_none(rig: Rig) -> None:
    assert take(rig, "a", "A") == "GRANTED"
    assert take(rig, "b", "B", "A") == "WAITING"
    assert take(rig, "c", "B") == "WAITING"
    assert rig.client.zrange(rig.keys.lane_leases, 0, -1) == ["a"]


def test_asking_again_is_harmless(rig: Rig) -> None:
    assert take(rig, "a", "A") == "GRANTED"
    assert take(rig, "a", "A") == "GRANTED"
    assert rig.client.lrange(rig.keys.lane("A"), 0, -1) == ["a"]
