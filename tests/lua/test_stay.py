"""lib/stay.lua: what a script opens is claimed for the thread that runs it, instead of being rung for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, SID, TID, WRITE, Rig, planned

QUEUES = ("read_only", "local_write", "network", "destructive", "turns", "finalize")


def free(threads: int = 0) -> str:
    """An offer of a thread for each queue, of whose pool so many others are free."""
    return " ".join(f"{queue}:{threads}" for queue in QUEUES)


ALL = free()
READS = [["HGET", "bq:{s1}:t:t01", "step"]]


def staying(queues: str = ALL, **visit: Any) -> dict[str, str]:
    """The arguments of a script whose thread may continue with work of these queues."""
    given = {"owner": "v1@w1", "lease_ms": LEASE_MS, "brains": "shop", "declared": "", "reads": READS, **visit}
    return {"stay": queues, "visit": json.dumps(given)}


def commit(rig: Rig, *calls: dict[str, Any], **given: Any) -> list[Any]:
    rig.owned()
    return rig.run("step_commit", item="{}", calls=json.dumps([planned(**call) for call in calls]), **given)


def call_reply(call: str, effect: str = "read_only") -> list[Any]:
    return ["CALL", call, 1, "{}", 1000, 60_000, effect, "tool", 1, "0", "", 0, 0]


OTHER = {"tid": "t02", "sid": "s2"}


def trace(rig: Rig, tid: str = TID, sid: str = SID) -> dict[str, str]:
    return rig.client.hgetall(rig.names(tid, sid)["trace"])


def _but_names(turn: dict[str, str]) -> dict[str, str]:
    return {field: value for field, value in turn.items() if field not in ("sid", "tid", "trace")}


def test_the_first_call_of_a_wave_is_claimed_and_the_others_are_rung(rig: Rig) -> None:
    reply = commit(rig, {}, {"index": 1}, **staying())
    assert reply == call_reply("c1-0")
    assert [rig.status(f"c1-{n}") for n in range(2)] == ["running", "dispatched"]
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c1-1", 1]]
    assert trace(rig)["c1-0:owner"] == "v1@w1"
    assert trace(rig)["c1-0:lease"] == str(rig.now_ms + LEASE_MS)
    assert rig.events()[-3:] == ["call.dispatched", "call.running", "call.dispatched"]


def test_the_claim_is_like_one_of_a_doorbell(rig: Rig) -> None:
    commit(rig, {}, **staying())
    rig.run("turn_submit", **OTHER)
    rig.run("turn_claim", fence=0, **OTHER)
    rig.run("step_commit", item="{}", calls=json.dumps([planned()]), **OTHER)
    rig.run("call_claim", owner="v1@w1", **OTHER)
    assert trace(rig) == trace(rig, **OTHER)


def test_a_write_is_claimed_with_its_lanes_and_its_redis(rig: Rig) -> None:
    assert commit(rig, {**WRITE, "lanes": '["A"]'}, **staying()) == call_reply("c1-0", "local_write")
    assert rig.client.lrange(rig.keys.lane("A"), 0, -1) == ["s1 t01 c1-0"]
    assert trace(rig)["c1-0:run"].startswith("1 ")
    assert rig.bells("brainq.tools.local_write") == []


def test_a_write_that_waits_for_its_lane_is_not_claimed(rig: Rig) -> None:
    rig.committed({**WRITE, "lanes": '["A"]'})
    rig.run("turn_submit", **OTHER)
    rig.run("turn_claim", fence=0, **OTHER)
    calls = json.dumps([planned(effect="local_write", lanes='["A"]')])
    assert rig.run("step_commit", item="{}", calls=calls, **OTHER, **staying()) == ["COMMITTED"]
    assert rig.status(**OTHER) == "waiting"
    # Its lane becomes free for it, but this thread works on another turn.
    rig.run("call_claim")
    rig.bells("brainq.turns")
    rig.bells("brainq.tools.local_write")  # so that nobody waits
    assert rig.run("call_settle", **staying())[0] == "TURN"
    assert rig.status(**OTHER) == "dispatched"


def test_the_last_result_of_a_wave_claims_the_next_wave(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim")
    assert rig.run("call_settle", **staying()) == call_reply("c1-1", "local_write")
    assert rig.status("c1-1") == "running"


def test_the_last_result_of_a_step_claims_the_turn(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    assert rig.run("call_settle", **staying()) == ["TURN", 2, rig.now_ms, "1"]
    turn = rig.turn()
    assert (turn["owner"], turn["fence"], turn["awaits"]) == ("v1@w1", "2", "coordinator")
    assert turn["lease_until"] == str(rig.now_ms + LEASE_MS)
    assert rig.bells("brainq.turns") == []
    assert rig.run("turn_beat", owner="v1@w1", fence=2)[0] == "OK"


def test_a_result_that_is_not_the_last_claims_nothing(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    rig.run("call_claim")
    rig.bells("brainq.turns")
    assert rig.run("call_settle", **staying()) == ["SETTLED"]


def test_the_end_of_a_turn_claims_the_first_finalizer_step(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.finalize")
    assert rig.run("turn_end", **staying(most=10)) == ["FINAL", "", "", "", "", "0"]
    turn = rig.turn()
    assert (turn["state"], turn["fin_owner"], turn["fin_fence"], turn["fin_tries"]) == ("closing", "v1@w1", "1", "1")
    assert turn["fin_lease"] == str(rig.now_ms + LEASE_MS)
    assert rig.bells("brainq.finalize") == []
    assert rig.run("finalize_beat", owner="v1@w1", fence=1)[0] == "OK"


def test_the_claim_of_the_first_step_is_like_one_of_a_doorbell(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_end", **staying(most=10))
    rig.run("turn_submit", **OTHER)
    rig.run("turn_claim", fence=0, **OTHER)
    rig.run("turn_end", **OTHER)
    rig.run("finalize_claim", step="log", owner="v1@w1", **OTHER)
    assert _but_names(rig.turn()) == _but_names(rig.client.hgetall(rig.names(**OTHER)["turn"]))


@pytest.mark.parametrize(
    ("queues", "given", "why"),
    [
        ("turns:0", {}, "unserved"),
        ("read_only:full turns:0", {}, "full"),
        ("read_only:paused turns:0", {}, "paused"),
        (ALL, {"brains": "other"}, "no_brain"),
    ],
)
def test_a_call_is_rung_for_if_the_thread_may_not_run_it(
    rig: Rig, queues: str, given: dict[str, Any], why: str
) -> None:
    rig.owned(brain="shop")
    calls = json.dumps([planned()])
    assert rig.run("step_commit", item="{}", calls=calls, **staying(queues, **given)) == ["COMMITTED", why]
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c1-0", 1]]


def test_whoever_waits_in_the_queue_comes_first(rig: Rig) -> None:
    rig.put_in_line("brainq.tools.read_only")
    assert commit(rig, {}, **staying()) == ["COMMITTED", "waiting"]
    assert rig.status() == "dispatched"


def test_a_thread_continues_if_whoever_waits_has_a_thread_as_well(rig: Rig) -> None:
    rig.put_in_line("brainq.tools.read_only")
    rig.put_in_line("brainq.tools.read_only")
    assert commit(rig, {}, **staying(free(1))) == ["COMMITTED", "waiting"]
    rig.run("turn_submit", **OTHER)
    rig.run("turn_claim", fence=0, **OTHER)
    # Three bells wait by now.
    assert rig.run("step_commit", item="{}", calls=json.dumps([planned()]), **OTHER, **staying(free(3)))[0] == "CALL"


def test_free_threads_do_not_help_while_tenants_wait_for_their_turn(rig: Rig) -> None:
    rig.client.zadd(rig.keys.tenant_queue("read_only"), {"s9 t09 c1-0": 1})
    assert commit(rig, {}, **staying(free(99))) == ["COMMITTED", "waiting"]


def test_all_that_waits_for_the_serial_pool_needs_a_thread_of_it(rig: Rig) -> None:
    rig.put_in_line("brainq.tools.network")
    rig.put_in_line("brainq.tools.destructive")
    assert commit(rig, {"effect": "local_write"}, **staying(free(1))) == ["COMMITTED", "waiting"]
    rig.run("turn_submit", **OTHER)
    rig.run("turn_claim", fence=0, **OTHER)
    calls = json.dumps([planned(effect="local_write", lanes='["B"]')])
    assert rig.run("step_commit", item="{}", calls=calls, **OTHER, **staying(free(3)))[0] == "CALL"


@pytest.mark.parametrize("effect", ["local_write", "network", "destructive"])
def test_writes_wait_for_one_thread(rig: Rig, effect: str) -> None:
    """Whatever waits in one of the serial pool's queues waits for the same thread."""
    rig.put_in_line("brainq.tools.network")
    assert commit(rig, {"effect": effect}, **staying()) == ["COMMITTED", "waiting"]


def test_a_turn_that_waits_comes_before_the_next_step(rig: Rig) -> None:
    rig.running()
    rig.put_in_line("brainq.turns")
    assert rig.run("call_settle", **staying()) == ["SETTLED", "waiting"]
    assert rig.turn()["owner"] == ""


def test_a_finalizer_step_that_waits_comes_before_the_first_step(rig: Rig) -> None:
    rig.owned()
    rig.put_in_line("brainq.finalize")
    assert rig.run("turn_end", **staying(most=10)) == ["ENDED", "", "", "", "waiting"]
    assert rig.turn()["fin_owner"] == ""


def test_a_cancelled_turn_is_rung(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    rig.bells("brainq.turns")
    assert rig.run("call_settle", **staying()) == ["SETTLED"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_a_call_that_was_cut_off_leaves_its_thread_nothing(rig: Rig) -> None:
    """Another thread settles it."""
    rig.running()
    rig.bells("brainq.turns")
    assert rig.run("call_settle", status="timed_out", **staying()) == ["SETTLED"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_a_turn_past_its_deadline_is_rung(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    rig.pass_ms(60_000)
    assert rig.run("call_settle", **staying()) == ["SETTLED", "expired"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_a_turn_that_lost_a_worker_is_claimed_by_its_doorbell(rig: Rig) -> None:
    """Its claim knows whether it goes to quarantine."""
    rig.running()
    rig.bells("brainq.turns")
    rig.client.hset(rig.names(TID)["turn"], "lost_attempts", 1)
    assert rig.run("call_settle", **staying()) == ["SETTLED", "suspect"]


def test_a_turn_begins_on_the_build_that_its_doorbell_chooses(rig: Rig) -> None:
    """The opening wave is no step: nothing has begun the turn on a build."""
    rig.owned()
    rig.run("turn_open", calls=json.dumps([planned(id="c0-0")]))
    rig.run("call_claim", call="c0-0")
    rig.bells("brainq.turns")
    declared = json.dumps({"build": "b1"})
    assert rig.run("call_settle", call="c0-0", **staying(declared=declared)) == ["SETTLED", "begins"]


def test_stopped_work_is_met_by_its_claim(rig: Rig) -> None:
    rig.client.hset(rig.keys.bells, "stops", "1")
    assert commit(rig, {}, **staying()) == ["COMMITTED", "stops"]


def test_notices_are_read_by_the_claimed_step(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    rig.client.rpush(rig.names(TID)["notices"], '{"role":"user","n":"late"}')
    assert rig.run("call_settle", **staying())[0] == "TURN"
    assert rig.history()[-1] == {"role": "user", "n": "late"}


def test_a_doorbell_of_claimed_work_is_dropped(rig: Rig) -> None:
    """One that an older worker, or the sweeper, rang."""
    commit(rig, {}, **staying())
    rig.bells("brainq.turns")
    assert rig.run("call_claim", owner="w9") == ["DROP", "running"]
    rig.run("call_settle", owner="v1@w1", **staying(owner="v2@w1"))
    assert rig.run("turn_claim", owner="w9", fence=1) == ["DROP", "stale"]
    assert rig.run("turn_end", owner="v2@w1", fence=2, **staying(owner="v3@w1", most=10))[0] == "FINAL"
    assert rig.run("finalize_claim", owner="w9", step="log") == ["DROP", "held"]


def test_a_lapsed_claim_is_found_like_any_other(rig: Rig) -> None:
    commit(rig, {}, **staying())
    rig.pass_ms(LEASE_MS + 1)
    assert "rescue c1-0 1" in json.dumps(rig.run("turn_sweep"))


def test_only_the_owner_of_the_offer_is_told_again(rig: Rig) -> None:
    commit(rig, {}, **staying())
    rig.bells("brainq.turns")
    assert rig.run("step_commit", item="{}", calls="[]", **staying(owner="v9@w1")) == ["LOST"]
    rig.run("call_settle", owner="v1@w1", **staying(owner="v2@w1"))
    assert rig.run("call_settle", owner="v1@w1", **staying(owner="v9@w1")) == ["SETTLED"]
    rig.run("turn_end", owner="v2@w1", fence=2, **staying(owner="v3@w1", most=10))
    assert rig.run("turn_end", owner="v2@w1", fence=2, **staying(owner="v9@w1", most=10)) == ["LOST"]
