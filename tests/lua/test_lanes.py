"""The scripts of lanes: how calls take turns, and what happens to the lease of one that is left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, WRITE, Rig

# Lanes, as the scripts that open waves take them and those that end calls leave them (lib/lanes, lib/leave).


QUEUE = "brainq.tools.local_write"


def of(session: int) -> dict[str, str]:
    return {"sid": f"s{session}", "tid": f"t0{session}"}


def commit(rig: Rig, session: int, *lanes: str, **call: Any) -> None:
    """A session whose turn commits one write in these lanes."""
    rig.run("turn_submit", **of(session))
    rig.run("turn_claim", fence=0, **of(session))
    names = ", ".join(f'"{lane}"' for lane in lanes)
    rig.commit({"lanes": f"[{names}]", **WRITE, **call}, **of(session))


def status(rig: Rig, session: int) -> str | None:
    return rig.status("c1-0", f"t0{session}", f"s{session}")


def line(rig: Rig, lane: str) -> list[str]:
    return [holder.split()[0] for holder in rig.client.lrange(rig.keys.lane(lane), 0, -1)]


def run_and_settle(rig: Rig, session: int, **given: str) -> None:
    assert rig.run("call_claim", **of(session))[0] == "GO"
    assert rig.run("call_settle", **of(session), **given) == ["SETTLED"]


def test_all_lanes_or_none(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A", "B")
    commit(rig, 3, "B")
    assert [status(rig, n) for n in (1, 2, 3)] == ["dispatched", "waiting", "waiting"]
    assert rig.client.zrange(rig.keys.lane_leases, 0, -1) == ["s1 t01 c1-0"]
    assert rig.bells(QUEUE) == [["s1", "t01", "c1-0", 1]]
    assert rig.events("t02", "s2")[-1] == "call.waiting"


def test_a_claim_says_how_long_its_call_waited_for_its_lanes(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.pass_ms(30)
    run_and_settle(rig, 1)
    rig.pass_ms(5)
    assert rig.run("call_claim", **of(2))[-2:] == [5, 30]


def test_who_settles_sends_on_who_is_first_everywhere_now(rig: Rig) -> None:
    """Of other sessions, too: each in its own turn."""
    commit(rig, 1, "A", "B")
    commit(rig, 2, "A")
    commit(rig, 3, "A", "B")
    commit(rig, 4, "B")
    rig.bells(QUEUE)
    for session in (1, 2, 3):
        run_and_settle(rig, session)
        after = session + 1
        assert rig.bells(QUEUE) == [[f"s{after}", f"t0{after}", "c1-0", 1]]
        assert rig.events(f"t0{after}", f"s{after}")[-1] == "call.dispatched"
    run_and_settle(rig, 4)
    assert rig.client.keys("*{lanes}*") == []


def test_who_leaves_a_line_from_its_middle_sends_nobody_on(rig: Rig) -> None:
    for session in (1, 2, 3):
        commit(rig, session, "A")
    rig.bells(QUEUE)
    rig.run("turn_cancel", **of(2))
    rig.run("turn_claim", fence=1, **of(2))
    assert rig.run("turn_end", fence=2, ending="cancelled", **of(2))[0] == "ENDED"
    assert line(rig, "A") == ["s1", "s3"]
    assert rig.bells(QUEUE) == []


def test_a_function_that_still_runs_keeps_its_lanes_until_it_says_that_it_has_ended(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    run_and_settle(rig, 1, status="timed_out", still_runs="1")
    assert (line(rig, "A"), status(rig, 2)) == (["s1", "s2"], "waiting")
    assert rig.run("call_settle", **of(1)) == ["LATE", "timed_out"]
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_the_next_write_of_a_turn_waits_for_its_abandoned_one(rig: Rig) -> None:
    rig.committed({"lanes": '["A"]', **WRITE}, {"index": 1, "wave": 2, "lanes": '["A"]', **WRITE})
    run_and_settle(rig, 1, status="timed_out", still_runs="1")
    assert rig.status("c1-1") == "waiting"
    rig.run("call_settle")
    assert rig.status("c1-1") == "dispatched"


def test_who_is_another_attempt_s_leaves_nothing(rig: Rig) -> None:
    commit(rig, 1, "A")
    rig.run("call_claim")
    assert rig.run("call_settle", owner="w2")[0] == "LOST"
    assert line(rig, "A") == ["s1"]


@pytest.mark.parametrize("policy", ["cancel", "deny"])
def test_who_is_sent_on_under_a_hold_leaves_its_lanes_to_the_next(rig: Rig, policy: str) -> None:
    for session in (1, 2, 3):
        commit(rig, session, "A")
    rig.run("hold_place", timeout_ms=60_000 if policy == "cancel" else 1, policy=policy, **of(2))
    rig.pass_ms(1)
    run_and_settle(rig, 1)
    assert status(rig, 2) == ("parked" if policy == "cancel" else "denied")
    assert (line(rig, "A"), status(rig, 3)) == (["s3"], "dispatched")


def test_who_was_held_back_stands_in_line_anew_when_it_may_go(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("hold_place", timeout_ms=60_000)
    assert rig.run("call_claim") == ["DROP", "held"]
    assert (status(rig, 1), status(rig, 2), line(rig, "A")) == ("parked", "dispatched", ["s2"])
    assert rig.run("hold_release") == ["RELEASED"]
    assert (status(rig, 1), line(rig, "A")) == ("waiting", ["s2", "s1"])


def test_who_is_sent_on_in_a_cancelled_turn_leaves_its_lanes(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("turn_cancel", **of(2))
    run_and_settle(rig, 1)
    assert (status(rig, 2), line(rig, "A")) == ("waiting", [])


def test_who_parks_leaves_its_lanes(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("call_claim")
    assert rig.run("call_park") == ["PARKED"]
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_who_is_given_up_leaves_its_lanes(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_who_is_given_up_while_its_function_still_runs_keeps_its_lanes(rig: Rig) -> None:
    """It was cut off when nobody could be told: its process beats for the lanes, and not for the call."""
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    rig.run("lane_beat", holder="s1 t01 c1-0")
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert (line(rig, "A"), status(rig, 2)) == (["s1", "s2"], "waiting")
    rig.run("call_settle", status="completed")  # and now it has ended
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_a_sweeper_that_looks_at_lapsed_lanes_does_not_pass_for_a_function_that_runs(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    rig.run("lane_check", mark=rig.run("lane_lapsed", hold_ms=LEASE_MS)[1])
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_no_next_attempt_runs_beside_a_function_that_was_cut_off(rig: Rig) -> None:
    commit(rig, 1, "A")
    rig.run("call_claim")
    rig.pass_ms(LEASE_MS)
    rig.run("lane_beat", holder="s1 t01 c1-0")
    assert rig.run("call_next_attempt") == ["ALIVE"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_next_attempt") == ["AGAIN", 2]


def test_the_end_of_a_turn_leaves_the_lanes_of_a_call_that_never_ran(rig: Rig) -> None:
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2, ending="cancelled")[0] == "ENDED"
    assert (line(rig, "A"), status(rig, 2)) == (["s2"], "dispatched")


def test_the_end_of_a_turn_keeps_the_lanes_of_a_call_that_runs(rig: Rig) -> None:
    commit(rig, 1, "A")
    rig.run("call_claim")
    rig.run("turn_cancel")
    rig.pass_ms(2000)
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2, ending="cancelled")[0] == "ENDED"
    assert line(rig, "A") == ["s1"]
    assert rig.run("call_settle") == ["LATE", "unknown"]
    assert line(rig, "A") == []


def test_one_turn_s_history_is_not_another_s(rig: Rig) -> None:
    """A write of another session is denied by its hold, and its turn goes on with what it was told."""
    commit(rig, 1, "A")
    commit(rig, 2, "A")
    rig.run("hold_place", timeout_ms=1, policy="deny", **of(2))
    rig.pass_ms(1)
    before = len(rig.history())
    run_and_settle(rig, 1)
    assert len(rig.history()) == before + 1
    told = rig.client.lrange(rig.keys.of_session("s2", "history"), 0, -1)
    assert "changes were on hold" in told[-1]


def test_without_a_broker_here_the_bell_lies_with_those_of_the_session_that_settled(redis_url: str) -> None:
    """They are published after it; nobody publishes the other session's now."""
    rig = Rig(redis_url, "outbox")
    try:
        commit(rig, 1, "A")
        commit(rig, 2, "A")
        outboxes = [rig.keys.of_session(sid, "outbox") for sid in ("s1", "s2")]
        rig.client.delete(*outboxes)
        run_and_settle(rig, 1)
        assert rig.client.llen(outboxes[1]) == 0
        rung = [json.loads(bell)["headers"]["id"] for bell in rig.client.lrange(outboxes[0], 0, -1)]
        assert "t02.c1-0.1" in rung
    finally:
        rig.close()


# lane_beat.lua: keeping lanes.


def test_only_a_holder_keeps_its_lanes(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, {"1": rig.now_ms + LEASE_MS})
    rig.pass_ms(3000)
    assert rig.run("lane_beat", holder="1") == ["OK"]
    assert rig.client.zscore(rig.keys.lane_leases, "1") == rig.now_ms + LEASE_MS
    assert rig.run("lane_beat", holder="2") == ["LOST"]


# lane_check.lua: lanes whose lease has lapsed.


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


# lane_lapsed.lua: holders that stopped beating.


def test_each_is_handed_to_one_sweeper(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, dict.fromkeys("12", rig.now_ms + LEASE_MS))
    assert rig.run("lane_lapsed", hold_ms=1_000) == ["LAPSED", f"{rig.now_ms + 999}.5"]
    rig.pass_ms(LEASE_MS)
    assert rig.once("lane_lapsed", most=1, hold_ms=1000) == ["LAPSED", f"{rig.now_ms + 999}.5", "1"]
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["2"]
    rig.pass_ms(1001)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["1", "2"]


def test_a_lease_of_before_the_clock_stepped_back_lasts_one_lease_more(rig: Rig) -> None:
    rig.client.zadd(rig.keys.lane_leases, {"1": rig.now_ms + LEASE_MS})
    rig.pass_ms(-3_600_000)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == []
    rig.pass_ms(LEASE_MS)
    assert rig.run("lane_lapsed", hold_ms=1_000)[2:] == ["1"]
