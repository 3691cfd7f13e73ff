"""hold_release.lua: what waited goes on."""

from __future__ import annotations

from tests.lua.rig import TIMEOUT_MS, WRITE, Rig


def held(rig: Rig, *holds: str) -> None:
    rig.owned()
    for hold in holds:
        rig.run("hold_place", hold=hold, timeout_ms=60_000)
    rig.commit(WRITE)
    assert rig.status() == "parked"


def test_the_last_one_lets_the_calls_go(rig: Rig) -> None:
    held(rig, "h1", "h2")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.status() == "parked"
    rig.pass_ms(1_000)
    assert rig.run("hold_release", hold="h2") == ["RELEASED"]
    assert (rig.status(), rig.turn()["state"], rig.turn()["holds"]) == ("dispatched", "active", "")
    deadline = int(rig.client.hget(rig.names("t01")["budget"], "deadline"))
    assert deadline == rig.now_ms + TIMEOUT_MS


def test_one_that_does_not_stand_is_absent(rig: Rig) -> None:
    assert rig.run("hold_release") == ["GONE"]
    held(rig, "h1")
    assert rig.run("hold_release", hold="h9") == ["ABSENT"]


def test_before_any_call_it_only_goes(rig: Rig) -> None:
    rig.active()
    rig.run("hold_place")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.events()[-1] == "hold.released"


def test_nothing_is_told_of_a_turn_that_is_over(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    rig.run("turn_end")
    told = rig.events()
    assert rig.run("hold_release") == ["ABSENT"]
    assert rig.events() == told


def test_a_cancelled_turn_opens_nothing(rig: Rig) -> None:
    held(rig, "h1")
    rig.run("turn_cancel")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.status() == "parked"
