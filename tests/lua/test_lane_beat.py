"""lane_beat.lua: keeping lanes."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_only_a_holder_keeps_its_lanes(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, {"1": rig.now_ms + LEASE_MS})
    rig.pass_ms(3000)
    assert rig.run("lane_beat", holder="1") == ["OK"]
    assert rig.client.zscore(rig.keys.lane_leases, "1") == rig.now_ms + LEASE_MS
    assert rig.run("lane_beat", holder="2") == ["LOST"]
