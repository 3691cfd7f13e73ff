"""call_dispatch.lua: a call whose lanes are free."""

from __future__ import annotations

from tests.lua.rig import WRITE, Rig


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
