"""lane_lapsed.lua: holders that stopped beating."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_each_is_handed_to_one_sweeper(rig: Rig) -> None:
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[rig.keys.lane(holder)])
    assert rig.run("lane_lapsed")[2:] == []
    rig.pass_ms(LEASE_MS)
    first = rig.scripts.lane_lapsed(leases=rig.keys.lane_leases, most=1, hold_ms=1000)
    assert first == ["LAPSED", f"{rig.now_ms + 999}.5", "1"]
    assert rig.run("lane_lapsed")[2:] == ["2"]
    rig.pass_ms(1001)
    assert rig.run("lane_lapsed")[2:] == ["1", "2"]
