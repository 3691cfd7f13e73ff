"""turn_beat.lua: a turn's lease."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_the_owner_keeps_the_turn(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(3000)
    assert rig.run("turn_beat") == ["OK"]
    assert rig.turn()["lease_until"] == str(rig.now_ms + LEASE_MS)


def test_the_owner_hears_of_a_cancel(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_cancel")
    assert rig.run("turn_beat") == ["CANCEL"]


def test_whoever_lost_the_fence_hears_it(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_beat", fence=0) == ["LOST"]
    assert rig.run("turn_beat", owner="w2") == ["LOST"]
    rig.run("turn_end")
    assert rig.run("turn_beat") == ["LOST"]
