"""Tenants take turns for the lists of calls, which are kept short."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.celery.names import LOCAL_WRITE_QUEUE, READ_ONLY_QUEUE
from tests.lua.rig import LEASE_MS, TIMEOUT_MS, Rig, planned

READS, WRITES = 16, 2  # doorbells that may lie in a list while others wait for a place


def turn_id(session_id: str) -> str:
    return "t" + session_id.replace(":", "")


def ask(rig: Rig, session_id: str, *calls: dict[str, Any]) -> None:
    """A turn whose first step asks for these calls; for one read where none are given."""
    at = {"sid": session_id, "tid": turn_id(session_id)}
    assert rig.run("turn_submit", max_tool_calls=99, **at)[0] == "ACTIVE"
    assert rig.run("turn_claim", fence=0, **at)[0] == "GO"
    plan = json.dumps([planned(**call) for call in calls or ({},)])
    assert rig.run("step_commit", calls=plan, item="{}", **at)[0] == "COMMITTED"


def ask_for_write(rig: Rig, session_id: str, lane: str = "") -> None:
    ask(rig, session_id, {"effect": "local_write", "lanes": json.dumps([lane or session_id])})


def flood(rig: Rig, count: int, tenant: str = "a") -> None:
    for number in range(count):
        ask(rig, f"{tenant}:{number:02}")


def lies_in_list(rig: Rig, queue: str = READ_ONLY_QUEUE) -> list[str]:
    """The sessions whose doorbells lie in the list, the oldest first."""
    bells = reversed(rig.client.lrange(rig.keys.prefix + queue, 0, -1))
    return [json.loads(json.loads(bell)["body"])[0][0] for bell in bells]


def waits(rig: Rig, effect: str = "read_only") -> list[str]:
    """The sessions whose calls wait for a place in it, the next one first."""
    return [member.split()[0] for member in rig.client.zrange(rig.keys.tenant_queue(effect), 0, -1)]


def lose(rig: Rig, queue: str = READ_ONLY_QUEUE) -> dict[str, Any]:
    """The oldest doorbell is taken from the list: what it tells."""
    session_id, its_turn, call, attempt = json.loads(json.loads(rig.client.rpop(rig.keys.prefix + queue))["body"])[0]
    return {"sid": session_id, "tid": its_turn, "call": call, "attempt": attempt}


def take(rig: Rig, queue: str = READ_ONLY_QUEUE, owner: str = "w1") -> str:
    """A worker takes the oldest doorbell, and claims by it; the session."""
    told = lose(rig, queue)
    assert rig.run("call_claim", owner=owner, **told)[0] == "GO"
    return str(told["sid"])


def at(session_id: str) -> dict[str, Any]:
    return {"sid": session_id, "tid": turn_id(session_id)}


def field(rig: Rig, session_id: str, name: str, call: str = "c1-0") -> str | None:
    trace = rig.names(turn_id(session_id), session_id)["trace"]
    return rig.client.hget(trace, f"{call}:{name}")


def left(rig: Rig) -> list[str]:
    return rig.client.keys("*{read_only}*") + rig.client.keys("*{local_write}*")


def test_while_the_list_is_short_a_call_goes_into_it(rig: Rig) -> None:
    flood(rig, READS)
    assert len(lies_in_list(rig)) == READS
    assert left(rig) == []
    assert field(rig, "a:00", "bell") is None


def test_a_list_that_is_full_grows_no_more_and_tenants_take_turns(rig: Rig) -> None:
    flood(rig, READS + 3)
    flood(rig, 2, "b")
    flood(rig, 1, "c")
    assert len(lies_in_list(rig)) == READS
    assert [take(rig) for _ in range(READS)] == [f"a:{number:02}" for number in range(READS)]
    assert [take(rig) for _ in range(6)] == ["a:16", "b:00", "c:00", "a:17", "b:01", "a:18"]
    assert left(rig) == []


def test_the_calls_of_one_wave_wait_one_by_one(rig: Rig) -> None:
    ask(rig, "a:1", *({"index": number} for number in range(READS + 2)))
    ask(rig, "b:1")
    assert waits(rig) == ["a:1", "b:1", "a:1"]
    assert [take(rig) for _ in range(READS + 3)][-3:] == ["a:1", "b:1", "a:1"]


def test_each_effect_has_a_list_of_its_own(rig: Rig) -> None:
    flood(rig, READS + 1)
    for number in range(WRITES + 1):
        ask_for_write(rig, f"a:w{number}")
    assert (len(lies_in_list(rig, LOCAL_WRITE_QUEUE)), waits(rig, "local_write")) == (WRITES, [f"a:w{WRITES}"])
    assert take(rig, LOCAL_WRITE_QUEUE) == "a:w0"
    assert (waits(rig), waits(rig, "local_write")) == (["a:16"], [])


def test_a_call_takes_its_turn_once_it_holds_its_lanes(rig: Rig) -> None:
    """It is let in by the end of the call before it in its lane, which is another turn's."""
    ask_for_write(rig, "a:1", "shared")
    ask_for_write(rig, "b:1", "shared")
    assert take(rig, LOCAL_WRITE_QUEUE) == "a:1"
    for number in range(WRITES + 1):
        ask_for_write(rig, f"c:{number}")
    assert waits(rig, "local_write") == ["c:2"]
    assert rig.run("call_settle", owner="w1", **at("a:1"))[0] == "SETTLED"
    assert waits(rig, "local_write") == ["b:1", "c:2"]
    assert field(rig, "b:1", "status") == "dispatched"
    assert [take(rig, LOCAL_WRITE_QUEUE) for _ in range(WRITES + 2)][-2:] == ["b:1", "c:2"]


@pytest.mark.parametrize("told", [{"attempt": 2}, {"serves": "local_write"}, {"call": "c7-0"}, {"brains": "other"}])
def test_a_doorbell_that_nobody_needs_makes_room_in_the_list_too(rig: Rig, told: dict[str, Any]) -> None:
    flood(rig, READS + 1)
    rig.client.hset(rig.names("ta00", "a:00")["turn"], "brain", "shop")
    assert rig.run("call_claim", **(lose(rig) | told))[0] == "DROP"
    assert lies_in_list(rig)[-1] == "a:16"


def test_lost_doorbells_do_not_keep_who_waits(rig: Rig) -> None:
    """The sweeper looks at each turn that waits, and has the list filled; it rings for none out of turn."""
    flood(rig, READS + 2)
    ask(rig, "b:1")
    rig.client.delete(rig.keys.prefix + READ_ONLY_QUEUE)
    rig.pass_ms(6_000)
    assert rig.run("turn_sweep", **at("a:17"))[0] == "LOOK"
    assert lies_in_list(rig) == ["a:16", "b:1", "a:17"]
    assert rig.task_ids(READ_ONLY_QUEUE) == ["ta16.c1-0.1", "tb1.c1-0.1", "ta17.c1-0.1"]


def test_who_waits_is_not_rung_for_by_the_sweeper(rig: Rig) -> None:
    """Though a doorbell that was rung later has been claimed."""
    flood(rig, READS + 2)
    rig.pass_ms(6_000)
    ask(rig, "b:1")
    for _ in range(2):
        take(rig)
    assert waits(rig) == ["a:17"]
    flood(rig, 1, "c")
    rig.client.hset(rig.keys.bells, "read_only", rig.now_ms)
    assert rig.run("turn_sweep", **at("a:17"))[0] == "LOOK"
    assert (len(lies_in_list(rig)), waits(rig)) == (READS, ["a:17", "c:00"])


def test_a_doorbell_that_lies_in_the_list_is_lost_when_one_rung_later_was_claimed(rig: Rig) -> None:
    """A call that waited was rung for when it got its place: marks of the list are of that time."""
    flood(rig, READS + 2)
    rig.pass_ms(1_000)
    take(rig)
    assert field(rig, "a:16", "rung_at") == str(rig.now_ms)
    rig.pass_ms(6_000)
    for _ in range(READS - 1):
        take(rig)
    assert rig.run("turn_sweep", **at("a:16"))[0] == "LOOK"
    assert lies_in_list(rig) == ["a:16", "a:17"]


def test_a_queue_that_was_lost_is_made_good_by_the_sweeper(rig: Rig) -> None:
    flood(rig, READS + 1)
    rig.client.delete(rig.keys.tenant_queue("read_only"))
    for _ in range(3):
        take(rig)
    rig.run("turn_sweep", **at("a:16"))
    assert lies_in_list(rig)[-1] == "a:16"
    assert rig.task_ids(READ_ONLY_QUEUE)[-1] == f"ta16.c1-0.1.again-{rig.now_ms}"
    rig.run("turn_sweep", **at("a:16"))
    assert lies_in_list(rig).count("a:16") == 1


def test_what_is_rung_again_waits_for_its_turn_and_keeps_its_own_id(rig: Rig) -> None:
    flood(rig, READS)
    assert lose(rig)["sid"] == "a:00"
    flood(rig, 2, "b")
    rig.client.hset(rig.keys.bells, "read_only", rig.now_ms + 1)
    rig.pass_ms(6_000)
    rig.run("turn_sweep", **at("a:00"))
    assert waits(rig) == ["a:00", "b:01"]
    rig.pass_ms(500)
    take(rig)
    assert rig.task_ids(READ_ONLY_QUEUE)[-1] == f"ta00.c1-0.1.again-{rig.now_ms}"
    assert field(rig, "a:00", "bell") == ""


def test_the_next_attempt_waits_for_its_turn(rig: Rig) -> None:
    ask_for_write(rig, "a:0")
    assert take(rig, LOCAL_WRITE_QUEUE) == "a:0"
    for number in range(1, WRITES + 3):
        ask_for_write(rig, f"b:{number}")
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("call_next_attempt", **at("a:0"))[0] == "AGAIN"
    assert waits(rig, "local_write") == ["a:0", "b:3", "b:4"]
    assert take(rig, LOCAL_WRITE_QUEUE) == "b:1"
    assert rig.task_ids(LOCAL_WRITE_QUEUE)[-1] == "ta0.c1-0.2"


def test_a_claim_by_a_copy_takes_the_call_out_of_the_queue_and_says_nothing_of_the_list(rig: Rig) -> None:
    flood(rig, READS + 1)
    rig.pass_ms(1_000)
    assert rig.run("call_claim", **at("a:16"))[0] == "GO"
    assert (waits(rig), len(lies_in_list(rig)), left(rig)) == ([], READS, [])
    assert rig.client.hget(rig.keys.bells, "read_only") is None
    take(rig)
    assert "a:16" not in lies_in_list(rig), "nobody rings for it any more"


def test_it_says_how_long_the_call_waited_in_all(rig: Rig) -> None:
    flood(rig, READS + 1)
    rig.pass_ms(1_000)
    take(rig)
    rig.pass_ms(500)
    newest = json.loads(rig.client.lindex(rig.keys.prefix + READ_ONLY_QUEUE, 0))
    assert newest["properties"]["delivery_tag"].startswith("ta16.c1-0.1.1000000"), "the list is as old"
    assert rig.run("call_claim", **at("a:16"))[-2] == 1_500


def test_a_hold_meets_a_call_that_waited(rig: Rig) -> None:
    for number in range(WRITES + 1):
        ask_for_write(rig, f"a:{number}")
    rig.run("hold_place", **at("a:2"))
    take(rig, LOCAL_WRITE_QUEUE)
    for _ in range(WRITES - 1):
        take(rig, LOCAL_WRITE_QUEUE)
    assert rig.run("call_claim", **lose(rig, LOCAL_WRITE_QUEUE)) == ["DROP", "held"]
    assert field(rig, "a:2", "status") == "parked"
    assert rig.run("hold_release", **at("a:2"))[0] == "RELEASED"
    assert take(rig, LOCAL_WRITE_QUEUE) == "a:2"


def test_a_turn_that_ends_takes_its_calls_out_of_the_queue(rig: Rig) -> None:
    flood(rig, READS + 1)
    ask(rig, "a:90", {}, {"index": 1})
    rig.pass_ms(TIMEOUT_MS)
    names = at("a:90")
    assert rig.run("turn_claim", fence=1, **names)[0] == "GO"
    assert rig.run("turn_end", fence=2, ending="timed_out", stop_reason="deadline", **names)[0] == "ENDED"
    assert waits(rig) == ["a:16"]


def test_an_opening_that_is_skipped_takes_its_calls_out_of_the_queue(rig: Rig) -> None:
    flood(rig, READS + 1)
    names = at("a:91")
    assert rig.run("turn_submit", **names)[0] == "ACTIVE"
    assert rig.run("turn_claim", fence=0, **names)[0] == "GO"
    opening = json.dumps([planned(id="c0-0")])
    assert rig.run("turn_open", calls=opening, opening_ms=1_000, **names)[0] == "OPENED"
    assert waits(rig) == ["a:16", "a:91"]
    rig.pass_ms(1_000)
    assert rig.run("opening_skip", **names) == ["SKIPPED"]
    assert waits(rig) == ["a:16"]


def test_a_call_that_is_gone_keeps_no_place(rig: Rig) -> None:
    flood(rig, READS + 2)
    rig.client.delete(rig.names("ta16", "a:16")["trace"])
    take(rig)
    assert lies_in_list(rig)[-1] == "a:17"


def test_the_queue_outlives_nobody(rig: Rig) -> None:
    flood(rig, READS + 1)
    assert len(left(rig)) == 2
    for key in left(rig):
        assert 0 < rig.client.pttl(key) <= 86_400_000


def test_where_the_broker_is_elsewhere_all_are_rung_at_once(redis_url: str) -> None:
    rig = Rig(redis_url, "outbox")
    try:
        flood(rig, READS + 1)
        assert left(rig) == []
        rung = rig.client.lrange(rig.keys.of_session("a:16", "outbox"), 0, -1)
        assert json.loads(rung[-1])["headers"]["id"] == "ta16.c1-0.1"
    finally:
        rig.close()
