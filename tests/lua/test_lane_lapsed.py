"""lane_lapsed.lua: holders that stopped beating."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_each_is_handed_to_one_sweeper(rig: Rig) -> None:
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[rig.keys.lane(holder)])
    assert rig.run("lane_lapsed") == ["LAPSED"]
    rig.pass_ms(LEASE_MS)
    assert rig.scripts.lane_lapsed(leases=rig.keys.lane_leases, most=1, hold_ms=1000) == ["LAPSED", "1"]
    assert rig.run("lane_lapsed") == ["LAPSED", "2"]
    rig.pass_ms(1000)
    assert rig.run("lane_lapsed") == ["LAPSED", "1", "2"]
