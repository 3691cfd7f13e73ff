"""flag_release.lua: a session says that it is ready."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def add(rig: Rig) -> None:
    rig.run("flag_add", timeout_ms=500)


def test_a_flag_no_turn_has_taken_makes_its_turn_ready(rig: Rig) -> None:
    add(rig)
    assert rig.run("flag_release") == ["READY"]
    assert rig.run("flag_release") == ["READY"]
    rig.active()
    assert rig.turn().get("holds", "") == ""
    assert rig.run("flag_release") == ["GONE"]


def test_one_that_was_taken_is_a_hold_of_that_turn(rig: Rig) -> None:
    add(rig)
    rig.active()
    assert rig.run("flag_release") == ["TAKEN", "t01"]


def test_it_goes_with_its_turn(rig: Rig) -> None:
    add(rig)
    rig.closing()
    assert rig.run("flag_release") == ["GONE"]
    assert rig.client.exists(rig.names(TID)["flags"]) == 0
