"""finalize_ahead.lua: steps behind one that is to be tried again go ahead of it."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import LEASE_MS, Rig

FAILED: dict[str, Any] = {"step": "log", "retry_ms": 700, "failure": "log: Boom"}
MORE: dict[str, Any] = {"step": "log", "retry_ms": -1}


def claim(rig: Rig, **given: Any) -> list[Any]:
    return rig.run("finalize_claim", step="log", **given)


def test_the_owner_takes_it_at_once_under_a_fence_of_its_own(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    since = str(rig.now_ms)
    assert rig.run("finalize_ahead", **FAILED) == ["GO", 2, "0", "0", "log: Boom"]
    assert rig.bells("brainq.finalize") == []
    turn = rig.turn()
    assert (turn["fin_step"], turn["fin_ahead"], turn["fin_owner"], turn["fin_tries"]) == (
        *("log", "result", "w1", "1"),
    )
    assert (turn["fin_failing_since"], turn["fin_retry_at"]) == (since, str(rig.now_ms + 700))
    assert rig.run("finalize_ahead", **FAILED) == ["GO", 2, "0", "0", "log: Boom"], "its reply may have been lost"
    assert rig.run("finalize_ahead", **FAILED, owner="w2") == ["LOST"]
    assert rig.run("finalize_beat", fence=2) == ["OK"]
    assert claim(rig, owner="w2") == ["DROP", "held"]


def test_who_dies_ahead_is_counted_there_and_the_waiting_step_is_not_blamed(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_ahead", **FAILED, past="decision")
    rig.pass_ms(LEASE_MS)
    go = claim(rig, owner="w2")
    assert (go[0], go[1], go[2], go[5]) == ("GO", 3, 1, 1)
    assert go[8:] == ["result", "decision", "log: Boom"]
    turn = rig.turn()
    assert (turn["fin_tries"], turn["fin_lost"], turn["fin_ahead_lost"]) == ("1", "0", "2")


def test_it_is_rung_for_and_taken_though_the_waiting_step_is_not_due(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    assert rig.run("finalize_ahead", **FAILED, owner="") == ["NEXT"]
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]
    go = claim(rig)
    assert (go[0], go[1], go[2], go[5], go[8]) == ("GO", 2, 1, 0, "result")


def test_after_the_result_others_come_first(rig: Rig) -> None:
    rig.finalizing()
    rig.run("result_publish")
    rig.bells("brainq.finalize")
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_ahead", **FAILED) == ["NEXT"]


def test_the_round_ends_and_the_waiting_step_waits_for_its_time(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_ahead", **FAILED)
    rig.pass_ms(100)
    assert rig.run("finalize_ahead", **MORE, fence=2, ahead="", past="result") == ["WAIT"]
    assert claim(rig) == ["DROP", "later"]
    rig.pass_ms(600)
    go = claim(rig)
    assert (go[0], go[2], go[5], go[8], go[9]) == ("GO", 2, 0, "", "result")


def test_what_is_due_before_the_round_ends_is_rung_for_by_the_next_sweep(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_ahead", step="log", retry_ms=0, failure="", uncounted=1)
    assert (rig.turn()["fin_tries"], rig.turn().get("fin_failing_since", "0")) == ("0", "0")
    rig.pass_ms(100)
    rig.run("finalize_ahead", **MORE, fence=2, ahead="")
    rig.pass_ms(2)
    rig.bells("brainq.finalize")
    rig.run("turn_sweep")
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]


def test_a_lost_bell_of_a_step_that_goes_ahead_is_rung_again_and_only_then(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_ahead", **FAILED, owner="")
    rig.bells("brainq.finalize")
    rig.run("turn_sweep")
    assert rig.bells("brainq.finalize") == []
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]
    assert claim(rig)[8] == "result"


def test_a_release_that_knows_of_none_takes_the_waiting_step_and_goes_on(rig: Rig) -> None:
    """What it leaves behind is no word about the step that comes then."""
    rig.finalizing()
    rig.run("finalize_ahead", **FAILED, owner="")
    go = claim(rig)
    assert rig.run("finalize_settle", step="log", fence=go[1], owner="") == ["NEXT"]
    go = rig.run("finalize_claim", step="result")
    assert (go[0], go[2], go[8]) == ("GO", 1, "")


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_ahead", **FAILED, fence=0) == ["LOST"]
    assert rig.run("finalize_ahead", step="result", retry_ms=700) == ["LOST"]
