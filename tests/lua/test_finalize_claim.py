"""finalize_claim.lua: a finalizer step is taken."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, TID, Rig


def test_the_next_step_is_taken_by_one(rig: Rig) -> None:
    rig.closing()
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 1, 1]
    assert rig.run("finalize_claim", step="log", owner="w2") == ["DROP", "held"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("finalize_claim", step="log", owner="w2")[:3] == ["GO", 2, 2]


def test_it_says_how_long_the_step_waited_for_a_worker(rig: Rig) -> None:
    rig.closing()
    rig.pass_ms(40)
    assert rig.run("finalize_claim", step="log")[7] == 40


def test_wrong_doorbells_are_dropped(rig: Rig) -> None:
    assert rig.run("finalize_claim", step="log") == ["DROP", "gone"]
    rig.finalizing()
    assert rig.run("finalize_claim", step="result") == ["DROP", "stale"]
    rig.run("finalize_retry")
    assert rig.run("finalize_claim", step="log") == ["DROP", "later"]


def test_workers_that_took_it_and_told_no_end_are_counted(rig: Rig) -> None:
    """A failure that was told is none of them, and the next step begins anew."""
    rig.closing()
    assert rig.run("finalize_claim", step="log")[5] == 0
    rig.pass_ms(LEASE_MS)
    assert rig.run("finalize_claim", step="log")[5] == 1
    assert rig.run("finalize_retry", fence=2) == ["WAIT"]
    rig.pass_ms(500)
    assert rig.run("finalize_claim", step="log")[5] == 1
    rig.pass_ms(LEASE_MS)
    assert rig.run("finalize_claim", step="log")[5] == 2
    rig.run("finalize_settle", step="log", fence=4)
    rig.pass_ms(LEASE_MS)
    assert rig.run("finalize_claim", step="result")[5] == 1
    rig.run("finalize_settle", step="result", next_step="decision", owner="", fence=6)
    assert rig.run("finalize_claim", step="decision")[5] == 0


def test_a_step_of_a_brain_that_nobody_has_any_more_is_anybodys_in_the_end(rig: Rig) -> None:
    rig.closing()
    rig.client.hset(rig.names(TID)["turn"], "brain", "lab")
    assert rig.run("finalize_claim", step="log", brains="shop") == ["DROP", "no_brain"]
    rig.pass_ms(299_999)
    assert rig.run("finalize_claim", step="log", brains="shop") == ["DROP", "no_brain"]
    rig.pass_ms(1)
    assert rig.run("finalize_claim", step="log", brains="shop")[:7:6] == ["GO", "lab"]


def test_a_worker_that_has_the_brain_takes_its_steps_at_once(rig: Rig) -> None:
    rig.closing()
    rig.client.hset(rig.names(TID)["turn"], "brain", "lab")
    assert rig.run("finalize_claim", step="log", brains="shop lab")[:7:6] == ["GO", "lab"]


def test_a_result_that_goes_out_meanwhile_moves_no_bell(rig: Rig) -> None:
    """The sweeper sent the result while the bell stood in a long queue: its claim says nothing of the other list."""
    rig.closing()
    rig.run("result_publish")
    rung_ms = rig.now_ms
    rig.pass_ms(1000)
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 1, 1]
    marks = rig.client.hmget(rig.keys.prefix + "bells", "finalize", "finalize_later")
    assert marks == [str(rung_ms), None]


def test_a_bell_of_a_build_that_does_not_say_its_list_is_where_the_result_tells(rig: Rig) -> None:
    rig.closing()
    rig.run("result_publish")
    rung_ms = rig.now_ms + 1000
    rig.client.hset(rig.names(TID)["turn"], "fin_rung", rung_ms)  # rung again by that build
    rig.pass_ms(2000)
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 1, 1]
    marks = rig.client.hmget(rig.keys.prefix + "bells", "finalize", "finalize_later")
    assert marks == [None, str(rung_ms)]


def test_what_an_older_build_did_ahead_of_a_failing_step_is_told(rig: Rig) -> None:
    rig.closing()
    ahead = {"fin_ahead": "result", "fin_ahead_of": "log", "fin_past": '{"decision": null, "end": [1, 0]}'}
    rig.client.hset(rig.names(TID)["turn"], mapping=ahead)
    assert rig.run("finalize_claim", step="log")[8:] == [ahead["fin_past"]]
