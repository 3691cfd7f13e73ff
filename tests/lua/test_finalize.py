"""The scripts of the finalizer's chain, of its jobs and of the published result."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import LEASE_MS, SID, TID, Rig
from tests.lua.test_builds import NEW, OF_NEW, OF_OLD, OLD, bells_of, serve

# finalize_claim.lua: a finalizer step is taken.


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


# finalize_beat.lua: a finalizer step's lease.


def test_only_the_newest_claim_beats(rig: Rig) -> None:
    rig.finalizing()
    rig.pass_ms(3000)
    assert rig.run("finalize_beat") == ["OK"]
    assert rig.turn()["fin_lease"] == str(rig.now_ms + LEASE_MS)
    assert rig.run("finalize_beat", fence=0) == ["LOST"]
    rig.run("finalize_settle", step="log")
    assert rig.run("finalize_beat") == ["LOST"]


# finalize_settle.lua: the chain goes on.


def test_the_next_step_is_rung_for_where_nobody_asks_for_it(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    assert rig.run("finalize_settle", step="log", owner="") == ["NEXT"]
    assert rig.bells("brainq.finalize") == [["s1", "t01", "result"]]
    assert rig.run("finalize_claim", step="result", owner="w2")[:3] == ["GO", 2, 1]


def test_who_settled_takes_the_next_step_under_a_fence_of_its_own(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    rig.run("finalize_retry")
    rig.pass_ms(500)
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 2, 2]
    assert rig.run("finalize_settle", step="log", fence=2) == ["GO", 3, 1, "0", "0"]
    assert rig.bells("brainq.finalize") == []
    turn = rig.turn()
    assert (turn["fin_step"], turn["fin_owner"], turn["fin_tries"]) == ("result", "w1", "1")
    assert turn["fin_lease"] == str(rig.now_ms + LEASE_MS)
    assert turn["fin_failing_since"] == "0"
    assert rig.run("finalize_beat", fence=2) == ["LOST"]
    assert rig.run("finalize_beat", fence=3) == ["OK"]
    assert rig.run("finalize_claim", step="result", owner="w2") == ["DROP", "held"]


def test_before_the_result_a_turn_is_gone_on_with_though_others_wait(rig: Rig) -> None:
    rig.finalizing()
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_settle", step="log")[0] == "GO"


def test_after_the_result_others_come_first(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_settle", step="log")
    rig.run("result_publish")
    rig.bells("brainq.finalize")
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_settle", step="result", next_step="decision", fence=2) == ["NEXT"]
    rig.client.delete(rig.keys.prefix + "brainq.finalize")
    assert rig.run("finalize_claim", step="decision")[:3] == ["GO", 3, 1]
    assert rig.run("finalize_settle", step="decision", next_step="end", fence=3) == ["GO", 4, 1, "0", "1"]


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_settle", step="log", fence=0) == ["LOST"]
    assert rig.run("finalize_settle", step="result") == ["LOST"]
    assert rig.run("finalize_settle", step="log")[0] == "GO"
    assert rig.run("finalize_settle", step="log")[:2] == ["GO", 2], "its reply may have been lost"
    assert rig.run("finalize_settle", step="log", owner="w2") == ["LOST"]
    assert rig.run("finalize_settle", step="log", next_step="decision") == ["LOST"]


# finalize_retry.lua: a step that failed.


def test_it_waits_and_remembers_since_when_it_fails(rig: Rig) -> None:
    rig.finalizing()
    since = str(rig.now_ms)
    assert rig.run("finalize_retry", failure="log: Boom") == ["WAIT"]
    assert (rig.turn()["fin_failing_since"], rig.turn()["fin_error"]) == (since, "log: Boom")
    rig.pass_ms(500)
    rig.run("finalize_claim", step="log")
    assert rig.run("finalize_retry", fence=2) == ["WAIT"]
    assert rig.turn()["fin_failing_since"] == since


def test_finalize_retry_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_retry", fence=0) == ["LOST"]


# finalize_send.lua: the result goes out, and the chain goes on.


def at_result(rig: Rig) -> None:
    """The chain is at the step that sends the result, which `w1` holds under fence 2."""
    rig.finalizing()
    rig.run("finalize_settle", step="log")
    rig.bells("brainq.finalize")


def test_the_result_is_out_and_the_next_step_taken(rig: Rig) -> None:
    at_result(rig)
    reply = rig.run("finalize_send", step="result", next_step="decision", fence=2, body="first")
    assert reply == ["GO", 3, 1, "0", "1"]
    turn = rig.turn()
    assert (turn["state"], turn["fin_step"], turn["fin_owner"]) == ("completed", "decision", "w1")
    assert (turn["result_at"], turn["fin_lease"]) == (str(rig.now_ms), str(rig.now_ms + LEASE_MS))
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.events()[-1] == "result"


def test_twice_is_once(rig: Rig) -> None:
    at_result(rig)
    rig.run("finalize_send", step="result", next_step="decision", fence=2, body="first")
    again: dict[str, Any] = {"step": "result", "next_step": "decision", "fence": 2, "body": "second"}
    assert rig.run("finalize_send", **again) == ["GO", 3, 1, "0", "1"], "its reply may have been lost"
    assert rig.run("finalize_send", **again, owner="w2") == ["LOST"]
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.events().count("result") == 1


def test_a_result_that_went_out_before_stays(rig: Rig) -> None:
    at_result(rig)
    rig.run("result_publish", body="of the sweeper")
    assert rig.run("finalize_send", step="result", next_step="decision", fence=2)[0] == "GO"
    assert rig.client.get(rig.names(TID)["result"]) == "of the sweeper"
    assert rig.events().count("result") == 1


def test_of_a_lost_claim_nothing_goes_out(rig: Rig) -> None:
    at_result(rig)
    assert rig.run("finalize_send", step="result", next_step="decision", fence=1) == ["LOST"]
    assert rig.run("finalize_send", step="log", next_step="decision", fence=2) == ["LOST"]
    assert rig.turn()["state"] == "closing"
    assert rig.client.exists(rig.names(TID)["result"]) == 0


def test_others_who_wait_for_their_result_come_first(rig: Rig) -> None:
    at_result(rig)
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_send", step="result", next_step="decision", fence=2) == ["NEXT"]
    turn = rig.turn()
    assert (turn["state"], turn["fin_step"], turn["fin_owner"]) == ("completed", "decision", "")


# finalize_finish.lua: the end of the chain.


def test_every_key_gets_its_lifetime(rig: Rig) -> None:
    rig.finalizing()
    rig.run("result_publish")
    assert rig.run("finalize_finish", step="log") == ["FINISHED"]
    assert (rig.turn()["fin_step"], rig.turn()["awaits"]) == ("", "nobody")
    names = rig.names(TID)
    kept = [names[part] for part in ("turn", "spec", "budget", "events", "result")]
    assert all(0 < rig.client.pttl(key) <= 50_000 for key in kept)


def test_finalize_finish_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_finish", step="log", fence=0) == ["LOST"]
    assert rig.run("finalize_finish", step="result") == ["LOST"]
    assert rig.run("finalize_finish", step="log") == ["FINISHED"]
    assert rig.run("finalize_finish", step="log") == ["LOST"]


# gate_shut.lua: the write gate before the end.


def test_it_is_shut_once(rig: Rig) -> None:
    assert rig.run("gate_shut") == ["GONE"]
    rig.active()
    assert rig.run("gate_shut") == ["SHUT"]
    assert rig.run("gate_shut") == ["ALREADY"]


# result_publish.lua: the result goes out.


def test_it_goes_out_once(rig: Rig) -> None:
    rig.closing()
    assert rig.run("result_publish", body="first") == ["PUBLISHED"]
    assert rig.run("result_publish", body="second") == ["ALREADY"]
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.turn()["state"] == "completed"
    assert rig.events()[-1] == "result"
    assert rig.events().count("result") == 1


def test_an_open_or_unknown_turn_has_no_result(rig: Rig) -> None:
    assert rig.run("result_publish") == ["OPEN"]
    rig.active()
    assert rig.run("result_publish") == ["OPEN"]


# result_amend.lua: what a result says of steps that were given up after it went out.


def test_it_changes_what_was_read_and_keeps_its_lifetime(rig: Rig) -> None:
    rig.closing()
    rig.run("result_publish", body="first")
    key = rig.names(TID)["result"]
    rig.client.pexpire(key, 60_000)
    assert rig.run("result_amend", known="first", body="second") == ["AMENDED"]
    assert rig.client.get(key) == "second"
    assert 0 < int(str(rig.client.pttl(key))) <= 60_000
    assert rig.run("result_amend", known="first", body="third") == ["OTHER"]
    assert rig.client.get(key) == "second"


def test_a_result_that_is_gone_stays_gone(rig: Rig) -> None:
    rig.closing()
    assert rig.run("result_amend", known="first", body="second") == ["OTHER"]
    assert rig.client.exists(rig.names(TID)["result"]) == 0


# judge_pass.lua: a judge's doorbell goes to a build that may judge the turn.


QUEUE = "brainq.judges@old"


def ended_by_the_old_build(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.names(TID)["turn"], mapping={"pin": OLD, "pin_build": "old"})


def test_it_is_rung_for_the_build_that_the_turn_is_pinned_to_once(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    serve(rig, "judges", OLD, "old")
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["PASSED"]
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["ALREADY"]
    assert rig.run("job_ring") == ["ALREADY"], "and no other bell is rung meanwhile"
    (bell,) = bells_of(rig, QUEUE)
    assert bell["properties"]["delivery_info"]["routing_key"] == QUEUE
    assert 0 < rig.client.pttl(rig.names(TID)["rung"]) <= 600_000


def test_where_no_worker_of_it_is_there_nobody_is_rung_in_vain(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    serve(rig, "judges", OLD, "old", ago_ms=10_001)
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["UNSERVED"]
    assert bells_of(rig, QUEUE) == []


def test_the_build_itself_and_one_that_it_is_released_to_may_judge(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    assert rig.run("judge_pass", brains=OF_OLD["brains"]) == ["MINE"]
    rig.client.hset(f"{rig.keys.prefix}released", OLD, NEW)
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["MINE"]


def test_a_state_that_this_one_does_not_read_goes_to_those_that_do(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.names(TID)["turn"], "format", 2)
    assert rig.run("judge_pass") == ["PASSED"]
    assert len(bells_of(rig, "brainq.judges@format-2")) == 1
    assert rig.client.exists(f"{rig.keys.prefix}{{{SID}}}:outbox") == 0


# job_ring.lua: the doorbell of a job in SQL.


def test_a_job_is_rung_for_once_in_a_while(rig: Rig) -> None:
    assert rig.run("job_ring") == ["RUNG"]
    assert rig.run("job_ring") == ["ALREADY"]
    assert rig.bells("brainq.judges") == [["s1", "t01", "relevance"]]
    assert 0 < rig.client.pttl(rig.names(TID)["rung"]) <= 600_000


def test_a_queue_that_nobody_empties_is_not_filled(rig: Rig) -> None:
    for number in range(100):
        rig.once("job_ring", rung=f"r{number}", job="j")
    assert rig.run("job_ring") == ["FULL"]
    assert len(rig.bells("brainq.judges")) == 100
    assert rig.run("job_ring") == ["RUNG"]
