"""turn_release.lua: an owner that lives lets its turn go."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_a_turn_that_is_let_go_has_lost_nobody(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(10)
    assert rig.client.delete(rig._queues["brainq.turns"]) == 1  # pyright: ignore[reportPrivateUsage]
    assert rig.once("turn_release") == ["RELEASED"]
    assert (rig.turn()["owner"], rig.turn()["rung_at"]) == ("", str(rig.now_ms))
    assert rig.run("turn_release") == ["GONE"]
    assert rig.run("turn_sweep")[0] == "LOOK"
    assert rig.bells("brainq.turns") == []
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.turn().get("lost_attempts", "0") == "0"


def test_an_owner_that_was_away_takes_it_back_that_it_was_lost(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    assert rig.turn()["lost_attempts"] == "1"
    assert rig.once("turn_release") == ["CLEARED"]
    assert rig.turn()["lost_attempts"] == "0"
    assert rig.run("turn_release") == ["GONE"]


def test_nobody_takes_back_what_another_lost(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    rig.run("turn_claim", owner="w2", fence=1)
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    assert rig.run("turn_release", owner="w1", fence=1) == ["GONE"]
    assert rig.turn()["lost_attempts"] == "2"
