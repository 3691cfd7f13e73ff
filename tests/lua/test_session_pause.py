"""session_pause.lua: no further turn begins."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_turns_wait_in_a_paused_session(rig: Rig) -> None:
    assert rig.run("session_pause", why="first") == ["PAUSED"]
    assert rig.run("session_pause", why="second") == ["ALREADY"]
    kept = rig.client.hmget(rig.names(TID)["session"], "paused_why", "paused_at")
    assert kept[0] == "first"
    assert int(str(kept[1])) > 0
    assert 0 < rig.client.pttl(rig.names(TID)["session"]) <= 100_000
    assert rig.run("turn_submit") == ["QUEUED", 1, ""]
    assert rig.client.pttl(rig.names(TID)["session"]) == -1


def test_a_live_turn_goes_on_and_the_next_does_not_begin(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02")
    rig.run("session_pause")
    assert rig.run("turn_end")[:2] == ["ENDED", ""]
    assert rig.turn("t02")["state"] == "queued"
    assert rig.client.pttl(rig.names(TID)["session"]) == -1


def test_when_the_last_that_waited_is_dropped_the_session_has_its_lifetime_again(rig: Rig) -> None:
    rig.run("session_pause")
    rig.run("turn_submit")
    assert rig.run("turn_cancel") == ["CANCELLED"]
    assert 0 < rig.client.pttl(rig.names(TID)["session"]) <= 100_000
