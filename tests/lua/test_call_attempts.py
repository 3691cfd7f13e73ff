"""The scripts of one attempt of a call: how it is queued again, claimed, started, renewed and given up."""

from __future__ import annotations

import pytest

from tests.lua.rig import LEASE_MS, TID, TIMEOUT_MS, WRITE, Rig

# call_claim.lua: the right to run a call.


def test_a_dispatched_call_is_taken_once(rig: Rig) -> None:
    rig.committed({"spec": "spec", "cap_ms": 700})
    reply = rig.run("call_claim")
    assert reply == ["GO", "spec", 700, TIMEOUT_MS, "read_only", "tool", 1, "0", "", 0, 0]
    assert rig.status() == "running"
    assert rig.run("call_claim", owner="w2") == ["DROP", "running"]
    rig.pass_ms(300)
    assert rig.run("call_claim") == ["GO", "spec", 700, TIMEOUT_MS - 300, "read_only", "tool", 1, "0", "", 300, 0]


def test_it_says_how_long_the_call_waited_for_a_worker(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(40)
    assert rig.run("call_claim")[-2:] == [40, 0]


def test_wrong_doorbells_are_dropped(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("call_claim", attempt=2) == ["DROP", "stale"]
    assert rig.run("call_claim", call="c9-9") == ["DROP", "gone"]


def test_a_call_past_its_deadline_or_of_a_cancelled_turn_never_starts(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(TIMEOUT_MS)
    assert rig.run("call_claim") == ["DROP", "expired"]
    rig.run("turn_cancel")
    assert rig.run("call_claim") == ["DROP", "closed"]
    assert rig.status() == "dispatched"


def test_under_a_hold_reads_go_and_the_others_are_parked(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place")
    assert rig.run("call_claim") == ["DROP", "held"]
    assert (rig.status(), rig.turn()["state"]) == ("parked", "parked")
    assert rig.run("call_claim") == ["DROP", "parked"]
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.committed({})
    rig.run("hold_place")
    assert rig.run("call_claim")[0] == "GO"


def test_under_a_hold_that_ended_it_is_denied_and_the_next_wave_opens(rig: Rig) -> None:
    rig.committed(WRITE, {"index": 1, "wave": 2, **WRITE})
    rig.run("hold_place", timeout_ms=1)
    rig.pass_ms(1)
    assert rig.run("call_claim") == ["DROP", "held"]
    assert (rig.status(), rig.status("c1-1")) == ("denied", "denied")


def test_an_attempt_that_may_have_begun_is_not_said_to_be_denied(rig: Rig) -> None:
    rig.running(again="1", **WRITE)
    rig.pass_ms(LEASE_MS)
    rig.run("call_next_attempt")
    rig.run("hold_place", timeout_ms=1)
    rig.pass_ms(1)
    assert rig.run("call_claim", attempt=2) == ["DROP", "held"]
    assert rig.status() == "unknown"


def test_a_worker_takes_only_the_effects_it_serves(rig: Rig) -> None:
    rig.committed(WRITE)
    assert rig.run("call_claim", serves="read_only") == ["DROP", "unserved"]
    assert rig.run("call_claim", serves="network destructive") == ["DROP", "unserved"]
    assert rig.status() == "dispatched"
    assert rig.run("call_claim", serves="network local_write")[0] == "GO"


def test_a_worker_takes_only_calls_of_the_brains_it_has(rig: Rig) -> None:
    rig.committed({})
    rig.client.hset(rig.names(TID)["turn"], "brain", "lab")
    assert rig.run("call_claim", brains="shop laboratory") == ["DROP", "no_brain"]
    assert rig.status() == "dispatched"
    reply = rig.run("call_claim", brains="shop lab")
    assert (reply[0], reply[8]) == ("GO", "lab")


# call_start.lua: the last look before a call that changes something.


HOLDER = "s1 t01 c1-0"


def claimed(rig: Rig) -> None:
    rig.committed({"lanes": '["A"]', **WRITE})
    rig.run("call_claim")


def test_both_leases_are_young_then(rig: Rig) -> None:
    claimed(rig)
    rig.pass_ms(3000)
    assert rig.run("call_start") == ["OK"]
    assert rig.client.zscore(rig.keys.lane_leases, HOLDER) == rig.now_ms + LEASE_MS
    assert rig.client.hget(rig.names("t01")["trace"], "c1-0:lease") == str(rig.now_ms + LEASE_MS)


def test_without_its_lanes_it_does_not_start(rig: Rig) -> None:
    claimed(rig)
    rig.client.zrem(rig.keys.lane_leases, HOLDER)
    assert rig.run("call_start") == ["LOST"]


def test_a_call_without_lanes_needs_none(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("call_start") == ["OK"]


def test_whose_it_is_no_longer_does_not_start(rig: Rig) -> None:
    claimed(rig)
    assert rig.run("call_start", owner="w2") == ["LOST"]
    rig.run("turn_cancel")
    assert rig.run("call_start") == ["CLOSED"]


# call_beat.lua: a running call's lease.


def test_the_lease_is_renewed(rig: Rig) -> None:
    rig.running()
    rig.pass_ms(3000)
    assert rig.run("call_beat") == ["OK"]
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:lease") == str(rig.now_ms + LEASE_MS)


def test_a_call_nobody_wants_hears_it(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    assert rig.run("call_beat") == ["CLOSED"]


def test_somebody_elses_call_is_lost_also_when_the_turn_is_closed(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_beat", owner="w2") == ["LOST"]
    assert rig.run("call_beat", attempt=2) == ["LOST"]
    rig.run("turn_cancel")
    assert rig.run("call_beat", attempt=2) == ["LOST"]


def test_a_settled_call_is_lost(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    rig.run("call_claim")
    rig.run("call_settle")
    assert rig.run("call_beat") == ["LOST"]


# call_token.lua: the token that a running call gives away.


def test_the_first_token_is_given_and_stays(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_token", token="one") == ["GIVEN", "one"]
    assert rig.run("call_token", token="two") == ["GIVEN", "one"]
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:given") == "one"


def test_the_next_attempt_gives_the_same(rig: Rig) -> None:
    rig.running()
    rig.run("call_token", token="one")
    rig.pass_ms(LEASE_MS + 1)
    rig.run("call_next_attempt")
    assert rig.run("call_token", token="two", attempt=2) == ["LOST"], "nobody has claimed it"
    rig.run("call_claim", attempt=2, owner="w2")
    assert rig.run("call_token", token="two", attempt=2, owner="w2") == ["GIVEN", "one"]


def test_somebody_elses_call_and_one_that_is_over_give_nothing(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_token", owner="w2") == ["LOST"]
    assert rig.run("call_token", attempt=2) == ["LOST"]
    rig.run("call_settle")
    assert rig.run("call_token") == ["LOST"]
    assert not rig.client.hexists(rig.names(TID)["trace"], "c1-0:given")


# call_unstarted.lua: an attempt whose intent stands, and that never started.


UNSTARTED_WRITE = {"effect": "local_write"}


@pytest.fixture
def call_unstarted_claimed(rig: Rig) -> Rig:
    """A write that w1 has claimed, and whose lease has lapsed."""
    rig.running(**UNSTARTED_WRITE)
    rig.pass_ms(LEASE_MS)
    return rig


def test_it_is_fenced(call_unstarted_claimed: Rig) -> None:
    assert call_unstarted_claimed.run("call_unstarted") == ["UNSTARTED"]
    assert call_unstarted_claimed.run("call_start") == ["LOST"]
    assert call_unstarted_claimed.run("call_next_attempt") == ["AGAIN", 2]


def test_one_that_is_beating_or_has_started_is_not(rig: Rig) -> None:
    rig.running(**UNSTARTED_WRITE)
    assert rig.run("call_unstarted") == ["STARTED"]
    assert rig.run("call_start") == ["OK"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_unstarted") == ["STARTED"]


def test_where_redis_may_have_lost_the_start_it_may_have_started(call_unstarted_claimed: Rig) -> None:
    trace = call_unstarted_claimed.names(TID)["trace"]
    noted = call_unstarted_claimed.client.hget(trace, "c1-0:run")
    attempt, run_id, replid = noted.split()
    said = call_unstarted_claimed.client.info()
    assert (attempt, run_id, replid) == ("1", said["run_id"], said["master_replid"])
    for other in (f"1 {replid} {replid}", f"1 {run_id} {run_id}", f"2 {run_id} {replid}"):
        call_unstarted_claimed.client.hset(trace, "c1-0:run", other)
        assert call_unstarted_claimed.run("call_unstarted") == ["STARTED"]
    call_unstarted_claimed.client.hdel(trace, "c1-0:run")  # claimed by an older worker
    assert call_unstarted_claimed.run("call_unstarted") == ["STARTED"]


def test_a_claim_by_another_than_wrote_the_intent_says_nothing_of_that_one(call_unstarted_claimed: Rig) -> None:
    """Redis lost the first claim of the attempt, and that it had started."""
    assert call_unstarted_claimed.run("call_unstarted", owner="w2") == ["STARTED"]
    assert call_unstarted_claimed.run("call_unstarted", owner="w1") == ["UNSTARTED"]


def test_another_attempt_is_gone(call_unstarted_claimed: Rig) -> None:
    assert call_unstarted_claimed.run("call_unstarted", attempt=2) == ["GONE", "running"]
    assert call_unstarted_claimed.run("call_unstarted", call="c9-9") == ["GONE", "gone"]


# call_next_attempt.lua: the next attempt of a call whose worker is gone.


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


# call_give_up.lua: the end of a call that must not run again.


def test_a_lapsed_call_is_settled(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert rig.status() == "unknown"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.run("call_settle") == ["LATE", "unknown"]


def test_call_give_up_the_living_are_left_alone(rig: Rig) -> None:
    rig.running()
    rig.pass_ms(LEASE_MS - 1)
    assert rig.run("call_give_up") == ["ALIVE"]


def test_call_give_up_what_does_not_run_any_more_is_gone(rig: Rig) -> None:
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
