"""lane_lapsed.lua: holders that stopped beating."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_each_is_handed_to_one_sweeper(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, dict.fromkeys("12", rig.now_ms + LEASE_MS))
    assert rig.run("lane_lapsed", hold_ms=1_000) == ["LAPSED", f"{rig.now_ms + 999}.5"]
    rig.pass_ms(LEASE_MS)
    assert rig.once("lane_lapsed", most=1, hold_ms=1000) == ["LAPSED", f"{rig.now_ms + 999}.5", "1"]
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["2"]
    rig.pass_ms(1001)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["1", "2"]


def test_a_lease_of_before_the_clock_stepped_back_lasts_one_lease_more(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, {"1": rig.now_ms + LEASE_MS})
    rig.pass_ms(-3_600_000)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == []
    rig.pass_ms(LEASE_MS)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["1"]
