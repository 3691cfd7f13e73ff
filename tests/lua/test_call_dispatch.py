"""call_dispatch.lua: a call whose lanes are free."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, WRITE, Rig


def test_a_waiting_call_is_rung_once(rig: Rig) -> None:
    rig.committed(WRITE)
    assert rig.run("call_dispatch") == ["DISPATCHED"]
    assert rig.run("call_dispatch") == ["ALREADY", "dispatched"]
    assert rig.bells("brainq.tools.local_write") == [["s1", "t01", "c1-0", 1]]


def test_a_call_that_never_ran_and_never_will_is_settled(rig: Rig) -> None:
    rig.committed(WRITE)
    assert rig.run("call_dispatch", call="c9-9") == ["SETTLED", "gone"]
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2)
    assert rig.run("call_dispatch") == ["SETTLED", "cancelled"]


def test_the_lanes_of_a_call_that_started_are_not_for_others_to_leave(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_settle", status="timed_out")
    assert rig.run("call_dispatch") == ["ALREADY", "timed_out"]


def test_under_a_hold_it_is_parked(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place")
    assert rig.run("call_dispatch") == ["HELD", ""]
    assert rig.status() == "parked"
    assert rig.bells("brainq.tools.local_write") == []


def test_under_a_hold_that_ended_it_is_denied(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place", timeout_ms=1)
    rig.pass_ms(1)
    assert rig.run("call_dispatch") == ["HELD", ""]
    assert rig.status() == "denied"


def test_a_second_attempt_that_was_held_back_goes_when_it_may(rig: Rig) -> None:
    rig.running(again="1", **WRITE)
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_rescue") == ["AGAIN", 2]
    rig.run("hold_place", timeout_ms=60_000)
    assert rig.run("call_claim", attempt=2) == ["HELD", ""]
    assert rig.run("hold_release") == ["RELEASED", "c1-0"]
    assert rig.run("call_dispatch") == ["DISPATCHED"]
    assert rig.bells("brainq.tools.local_write")[-1] == ["s1", "t01", "c1-0", 2]
