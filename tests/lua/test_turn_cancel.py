"""turn_cancel.lua: the wish to stop."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_a_turn_that_waits_ends_at_once(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("turn_cancel", tid="t02") == ["CANCELLED"]
    assert rig.turn("t02")["ending"] == "cancelled"
    assert rig.client.llen(rig.names(TID)["waiting"]) == 0
    assert rig.bells("brainq.finalize") == [["s1", "t02", "log"]]


def test_a_live_turn_is_marked_and_rung_once(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    assert rig.run("turn_cancel") == ["REQUESTED"]
    assert rig.turn()["cancel"] == "1"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_what_ended_or_is_unknown_cannot_be_cancelled(rig: Rig) -> None:
    assert rig.run("turn_cancel") == ["GONE"]
    rig.closing()
    assert rig.run("turn_cancel") == ["ENDED", "closing"]
