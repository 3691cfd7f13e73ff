"""call_next_attempt.lua: the next attempt of a call whose worker is gone."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_a_lapsed_call_is_asked_for_again(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.tools.read_only")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_next_attempt") == ["AGAIN", 2]
    assert rig.status() == "dispatched"
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c1-0", 2]]
    assert rig.run("call_settle") == ["LOST", "dispatched"]


def test_the_living_are_left_alone(rig: Rig) -> None:
    rig.running()
    rig.pass_ms(LEASE_MS - 1)
    assert rig.run("call_next_attempt") == ["ALIVE"]


def test_what_does_not_run_any_more_is_gone(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("call_next_attempt") == ["GONE", "dispatched"]
    assert rig.run("call_next_attempt", call="c9-9") == ["GONE", "gone"]
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_next_attempt", attempt=2) == ["GONE", "running"]
    rig.run("turn_cancel")
    rig.pass_ms(2000)
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2)
    assert rig.run("call_next_attempt") == ["GONE", "cancelled"]
