"""lane_check.lua: lanes whose lease has lapsed."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, WRITE, Rig


def lapsed(rig: Rig) -> str:
    """A write in lane A, without a beat for too long; the mark its sweeper got."""
    rig.committed({"lanes": '["A"]', **WRITE})
    rig.pass_ms(LEASE_MS)
    return found(rig)


def found(rig: Rig) -> str:
    word, mark, holder = rig.run("lane_lapsed", hold_ms=1_000)
    assert (word, holder) == ("LAPSED", "s1 t01 c1-0")
    return str(mark)


def lease(rig: Rig) -> float | None:
    score: float | None = rig.client.zscore(rig.keys.lane_leases, "s1 t01 c1-0")
    return score


def abandoned(rig: Rig) -> None:
    """It was cut off; its function runs, and its process is silent."""
    rig.committed({"lanes": '["A"]', **WRITE})
    rig.run("call_claim")
    rig.run("call_settle", status="timed_out", still_runs="1")
    rig.pass_ms(LEASE_MS)


def test_those_of_a_call_that_waits_in_its_queue_are_kept(rig: Rig) -> None:
    mark = lapsed(rig)
    assert rig.run("lane_check", mark=mark) == ["KEPT"]
    assert lease(rig) == rig.now_ms + LEASE_MS


def test_those_of_a_call_that_runs_are_kept_for_its_rescue(rig: Rig) -> None:
    rig.committed({"lanes": '["A"]', **WRITE})
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    mark = found(rig)
    assert rig.run("lane_check", mark=mark) == ["KEPT"]
    assert lease(rig) == float(mark), "as if its process lived"


def test_those_of_a_call_that_is_over_are_left(rig: Rig) -> None:
    abandoned(rig)
    assert rig.run("lane_check", mark=found(rig)) == ["LEFT"]
    assert rig.client.keys("*{lanes}*") == []


def test_those_of_a_turn_that_is_gone_are_left(rig: Rig) -> None:
    mark = lapsed(rig)
    rig.client.delete(rig.names("t01")["trace"])
    assert rig.run("lane_check", mark=mark) == ["LEFT"]


def test_an_abandoned_function_that_beats_again_keeps_them(rig: Rig) -> None:
    """It had been found silent, and renewed them after that."""
    abandoned(rig)
    mark = found(rig)
    assert rig.run("lane_beat", holder="s1 t01 c1-0") == ["OK"]
    assert rig.run("lane_check", mark=mark) == ["KEPT"]
    assert lease(rig) == rig.now_ms + LEASE_MS


def test_a_mark_of_an_earlier_look_frees_nothing(rig: Rig) -> None:
    abandoned(rig)
    mark = found(rig)
    rig.pass_ms(LEASE_MS + 1)
    found(rig)
    assert rig.run("lane_check", mark=mark) == ["KEPT"]


def test_who_holds_none_leaves_none(rig: Rig) -> None:
    rig.committed(WRITE)
    assert rig.run("lane_check", mark="1.5") == ["KEPT"]
