"""turn_submit.lua: a turn becomes live, or waits."""

from __future__ import annotations

from tests.lua.rig import TID, TIMEOUT_MS, Rig


def test_the_first_turn_of_a_session_is_live_and_rung(rig: Rig) -> None:
    assert rig.run("turn_submit") == ["ACTIVE"]
    assert rig.turn()["state"] == "active"
    assert rig.bells("brainq.turns") == [["s1", "t01", 0]]
    assert rig.events() == ["turn.active"]
    assert rig.client.hget(rig.names(TID)["budget"], "deadline") == str(rig.now_ms + TIMEOUT_MS)


def test_the_next_ones_wait_in_order(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", tid="t02") == ["QUEUED", 1]
    assert rig.run("turn_submit", tid="t03") == ["QUEUED", 2]
    assert rig.turn("t02")["state"] == "queued"
    assert rig.client.hget(rig.names("t02")["budget"], "deadline") is None
    assert [bell[1] for bell in rig.bells("brainq.turns")] == ["t01"]


def test_a_turn_that_is_known_stays_as_it_is(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", spec_json="other") == ["EXISTS", "active"]
    assert rig.client.get(rig.names(TID)["spec"]) == "{}"


def test_keys_of_a_live_turn_have_no_lifetime(rig: Rig) -> None:
    rig.client.hset(rig.names(TID)["session"], "turns", 1)
    rig.client.pexpire(rig.names(TID)["session"], 1000)
    rig.active()
    assert {rig.client.pttl(rig.names(TID)[part]) for part in ("session", "turn", "spec", "budget")} == {-1}
