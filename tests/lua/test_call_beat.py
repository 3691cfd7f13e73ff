"""call_beat.lua: a running call's lease."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, TID, Rig


def test_the_lease_is_renewed(rig: Rig) -> None:
    rig.running()
    rig.pass_ms(3000)
    assert rig.run("call_beat") == ["OK"]
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:lease") == str(rig.now_ms + LEASE_MS)


def test_a_call_nobody_wants_hears_it(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    assert rig.run("call_beat") == ["CLOSED"]


def test_somebody_elses_call_is_lost_also_when_the_turn_is_closed(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_beat", owner="w2") == ["LOST"]
    assert rig.run("call_beat", attempt=2) == ["LOST"]
    rig.run("turn_cancel")
    assert rig.run("call_beat", attempt=2) == ["LOST"]


def test_a_settled_call_is_lost(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    rig.run("call_claim")
    rig.run("call_settle")
    assert rig.run("call_beat") == ["LOST"]
