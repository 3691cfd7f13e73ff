"""index_drop.lua: a turn that is not there is looked at no more."""

from __future__ import annotations

from tests.lua.rig import SID, TID, Rig


def test_a_turn_that_is_not_there_is_looked_at_no_more(rig: Rig) -> None:
    rig.run("index_hasten", members=[f"{SID} {TID}", f"{SID} t02"], after_ms=0)
    assert rig.run("index_drop") == ["DROPPED"]
    assert (rig.look_in_ms(), rig.look_in_ms("t02")) == (None, 0)


def test_one_that_came_back_meanwhile_is(rig: Rig) -> None:
    rig.active()
    before = rig.look_in_ms()
    assert rig.run("index_drop") == ["KNOWN"]
    assert rig.look_in_ms() == before == 5_000
