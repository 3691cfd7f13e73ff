"""call_start.lua: the last look before a call that changes something."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, WRITE, Rig

HOLDER = "s1 t01 c1-0"


def claimed(rig: Rig) -> None:
    rig.committed({"lanes": '["A"]', **WRITE})
    rig.run("call_claim")


def test_both_leases_are_young_then(rig: Rig) -> None:
    claimed(rig)
    rig.pass_ms(3000)
    assert rig.run("call_start") == ["OK"]
    assert rig.client.zscore(rig.keys.lane_leases, HOLDER) == rig.now_ms + LEASE_MS
    assert rig.client.hget(rig.names("t01")["trace"], "c1-0:lease") == str(rig.now_ms + LEASE_MS)


def test_without_its_lanes_it_does_not_start(rig: Rig) -> None:
    claimed(rig)
    rig.client.zrem(rig.keys.lane_leases, HOLDER)
    assert rig.run("call_start") == ["LOST"]


def test_a_call_without_lanes_needs_none(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("call_start") == ["OK"]


def test_whose_it_is_no_longer_does_not_start(rig: Rig) -> None:
    claimed(rig)
    assert rig.run("call_start", owner="w2") == ["LOST"]
    rig.run("turn_cancel")
    assert rig.run("call_start") == ["CLOSED"]
