"""call_give_up.lua: the end of a call that must not run again."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, TID, Rig


def test_a_lapsed_call_is_settled(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert rig.status() == "unknown"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.run("call_settle") == ["LATE", "unknown"]


def test_the_living_are_left_alone(rig: Rig) -> None:
    rig.running()
    rig.pass_ms(LEASE_MS - 1)
    assert rig.run("call_give_up") == ["ALIVE"]


def test_what_does_not_run_any_more_is_gone(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("call_give_up") == ["GONE", "dispatched"]
    assert rig.run("call_give_up", call="c9-9") == ["GONE", "gone"]
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", attempt=2) == ["GONE", "running"]
    rig.run("turn_cancel")
    rig.pass_ms(2000)
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2)
    assert rig.run("call_give_up") == ["GONE", "cancelled"]


def test_a_result_that_came_from_outside_before_the_worker_died_is_its_end(rig: Rig) -> None:
    rig.running(effect="local_write")
    early = {"token": "k1", "known": "1", "status": "completed", "message": '{"role":"tool","content":"done"}'}
    assert rig.run("outside_complete", **early, retryable="1") == ["EARLY"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert rig.status() == "completed"
    assert rig.history()[-1]["content"] == "done"
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:retryable") == "1"
    assert rig.run("outside_complete", **early) == ["USED"]
