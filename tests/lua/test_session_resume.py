"""session_resume.lua: turns begin again."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_the_first_that_waits_begins(rig: Rig) -> None:
    rig.run("session_pause")
    rig.run("turn_submit")
    rig.run("turn_submit", tid="t02")
    assert rig.run("session_resume") == ["RESUMED", "t01"]
    assert (rig.turn()["state"], rig.turn("t02")["state"]) == ("active", "queued")
    assert rig.bells("brainq.turns") == [["s1", "t01", 0]]
    assert rig.run("session_resume") == ["ALREADY"]


def test_beside_a_live_turn_nothing_begins(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("session_pause")
    assert rig.run("session_resume") == ["RESUMED", ""]
    assert rig.turn("t02")["state"] == "queued"


def test_where_none_waits_it_only_is_no_longer_paused(rig: Rig) -> None:
    assert rig.run("session_resume") == ["ALREADY"]
    rig.run("session_pause")
    assert rig.run("session_resume") == ["RESUMED", ""]
    assert rig.client.hmget(rig.names(TID)["session"], "paused", "paused_at", "paused_why") == [None] * 3
