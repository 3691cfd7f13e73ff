"""Tenants take turns for the finalizer's first list, which is kept short."""

from __future__ import annotations

import json
from typing import Any

from brainq.adapters.celery.names import FINALIZE_QUEUE
from tests.lua.rig import Rig

IN_LIST = 8  # doorbells that may lie in the list while others wait for a place


def end(rig: Rig, session_id: str, turn_id: str) -> None:
    """Submit a turn, and end it."""
    at = {"sid": session_id, "tid": turn_id}
    assert rig.run("turn_submit", **at)[0] == "ACTIVE"
    assert rig.run("turn_claim", fence=0, **at)[0] == "GO"
    assert rig.run("turn_end", **at)[0] == "ENDED"


def flood(rig: Rig, count: int, tenant: str = "a") -> None:
    for number in range(count):
        end(rig, f"{tenant}:{number}", f"{tenant}{number:02}")


def list_key(rig: Rig) -> str:
    return rig.keys.prefix + FINALIZE_QUEUE


def lies_in_list(rig: Rig) -> list[str]:
    """The turns whose doorbells lie in the first list, the oldest first."""
    bells = reversed(rig.client.lrange(list_key(rig), 0, -1))
    return [json.loads(json.loads(bell)["body"])[0][1] for bell in bells]


def waits(rig: Rig) -> list[str]:
    """The turns that wait for a place in it, the next one first."""
    return [member.split()[1] for member in rig.client.zrange(rig.keys.tenant_queue("finalize"), 0, -1)]


def take(rig: Rig) -> str:
    """A worker takes the oldest doorbell, and claims by it; the turn."""
    session_id, turn_id, step = json.loads(json.loads(rig.client.rpop(list_key(rig)))["body"])[0]
    assert rig.run("finalize_claim", sid=session_id, tid=turn_id, step=step)[0] == "GO"
    return turn_id


def claim(rig: Rig, number: int, **given: Any) -> list[Any]:
    return rig.run("finalize_claim", sid=f"a:{number}", tid=f"a{number:02}", **{"step": "log"} | given)


def field(rig: Rig, number: int, name: str) -> str:
    return str(rig.client.hget(rig.keys.turn(f"a:{number}", f"a{number:02}"), name))


def test_while_the_list_is_short_a_doorbell_goes_into_it(rig: Rig) -> None:
    flood(rig, IN_LIST)
    assert len(lies_in_list(rig)) == IN_LIST
    assert not rig.client.keys(rig.keys.prefix + "{finalize}:*")


def test_a_list_that_is_full_grows_no_more_and_tenants_take_turns(rig: Rig) -> None:
    flood(rig, IN_LIST + 3)
    flood(rig, 2, "b")
    flood(rig, 1, "c")
    assert len(lies_in_list(rig)) == IN_LIST
    first = [take(rig) for _ in range(IN_LIST)]
    assert first == [f"a{number:02}" for number in range(IN_LIST)]
    assert [take(rig) for _ in range(6)] == ["a08", "b00", "c00", "a09", "b01", "a10"]
    assert not rig.client.keys(rig.keys.prefix + "{finalize}:*"), "nothing of it is left"


def test_tenants_that_come_anew_do_not_overtake_who_waits(rig: Rig) -> None:
    flood(rig, IN_LIST + 2)
    end(rig, "z:1", "z01")
    for number in range(4):
        take(rig)
        end(rig, f"b{number}:1", f"b{number}")
    rest = [take(rig) for _ in range(IN_LIST + 3)]
    assert rest.index("z01") < rest.index("b1") < rest.index("b3")


def test_a_tenant_does_not_come_back_into_a_round_that_it_had(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    end(rig, "z:1", "z01")
    take(rig)  # a08 gets its place
    end(rig, "a:90", "a90")
    assert waits(rig) == ["z01", "a90"]


def test_a_doorbell_that_nobody_needs_makes_room_in_the_list_too(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    rig.client.rpop(list_key(rig))
    assert claim(rig, 0, step="result") == ["DROP", "stale"]
    assert lies_in_list(rig)[-1] == "a08"


def test_a_step_that_comes_next_before_the_result_waits_for_its_tenants_turn(rig: Rig) -> None:
    flood(rig, IN_LIST + 2)
    end(rig, "b:1", "b01")
    assert take(rig) == "a00"
    at = {"sid": "a:0", "tid": "a00"}
    assert rig.run("finalize_settle", step="log", next_step="usage", owner="", **at) == ["NEXT"]
    assert waits(rig) == ["b01", "a09", "a00"]
    assert [take(rig) for _ in range(IN_LIST + 3)][-3:] == ["b01", "a09", "a00"]


def test_lost_doorbells_do_not_keep_who_waits(rig: Rig) -> None:
    """The sweeper looks at each turn that waits, and has the list filled; it rings for none out of turn."""
    flood(rig, IN_LIST + 2)
    end(rig, "b:1", "b01")
    rig.client.delete(list_key(rig))
    rig.pass_ms(6_000)
    assert rig.run("turn_sweep", sid="a:9", tid="a09")[0] == "LOOK"
    assert lies_in_list(rig) == ["a08", "b01", "a09"]
    assert rig.task_ids(FINALIZE_QUEUE) == ["a08.final.log.0", "b01.final.log.0", "a09.final.log.0"]


def test_who_waits_is_not_rung_for_by_the_sweeper(rig: Rig) -> None:
    flood(rig, IN_LIST + 2)
    rig.pass_ms(6_000)
    assert rig.run("turn_sweep", sid="a:9", tid="a09")[0] == "LOOK"
    assert (len(lies_in_list(rig)), waits(rig)) == (IN_LIST, ["a08", "a09"])


def test_a_doorbell_that_lies_in_the_list_is_lost_when_one_rung_later_was_claimed(rig: Rig) -> None:
    """A turn that waited was rung for when it got its place: marks of the list are of that time."""
    flood(rig, IN_LIST + 2)
    rig.pass_ms(1_000)
    take(rig)
    assert field(rig, 8, "fin_rung") == str(rig.now_ms)
    rig.pass_ms(6_000)
    for _ in range(IN_LIST - 1):
        take(rig)
    assert rig.run("turn_sweep", sid="a:8", tid="a08")[0] == "LOOK"
    assert lies_in_list(rig) == ["a08", "a09"]


def test_a_queue_that_was_lost_is_made_good_by_the_sweeper(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    rig.client.delete(rig.keys.tenant_queue("finalize"))
    for _ in range(3):
        take(rig)
    rig.pass_ms(6_000)
    rig.run("turn_sweep", sid="a:8", tid="a08")
    assert lies_in_list(rig)[-1] == "a08"
    assert rig.task_ids(FINALIZE_QUEUE)[-1] == f"a08.final.log.0.again-{rig.now_ms}"


def test_what_is_rung_again_waits_for_its_turn_and_keeps_its_own_id(rig: Rig) -> None:
    flood(rig, IN_LIST)
    assert take(rig) == "a00"
    flood(rig, 2, "b")
    rig.pass_ms(11_000)  # its worker is gone
    again_ms = rig.now_ms
    rig.run("turn_sweep", sid="a:0", tid="a00")
    assert waits(rig) == ["a00", "b01"]
    rig.pass_ms(500)
    take(rig)
    assert rig.task_ids(FINALIZE_QUEUE)[-1] == f"a00.final.log.1.again-{again_ms + 500}"


def test_a_claim_by_a_copy_takes_the_turn_out_of_the_queue_and_says_nothing_of_the_list(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    rig.pass_ms(1_000)
    assert claim(rig, 8)[:2] == ["GO", 1]
    assert (waits(rig), len(lies_in_list(rig))) == ([], IN_LIST)
    assert not rig.client.keys(rig.keys.prefix + "{finalize}:*")
    assert rig.client.hget(rig.keys.prefix + "bells", "finalize") is None


def test_it_says_how_long_the_step_waited_in_all(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    rig.pass_ms(1_000)
    take(rig)
    rig.pass_ms(500)
    newest = json.loads(rig.client.lindex(list_key(rig), 0))
    assert newest["headers"]["id"] == "a08.final.log.0"
    assert newest["properties"]["delivery_tag"].startswith("a08.final.log.0.1000000"), "the list is as old"
    assert claim(rig, 8)[7] == 1_500


def test_who_has_its_result_keeps_no_place_from_others(rig: Rig) -> None:
    """The sweeper sent it; what is left of its chain goes behind others' results."""
    flood(rig, IN_LIST + 2)
    names = {"sid": "a:8", "tid": "a08"}
    assert rig.run("result_publish", **names) == ["PUBLISHED"]
    take(rig)
    assert lies_in_list(rig)[-1] == "a09"
    assert [bell[1] for bell in rig.bells("later")] == ["a08"]


def test_a_turn_that_is_gone_keeps_no_place(rig: Rig) -> None:
    flood(rig, IN_LIST + 2)
    rig.client.delete(rig.keys.turn("a:8", "a08"))
    take(rig)
    assert lies_in_list(rig)[-1] == "a09"


def test_the_queue_outlives_nobody(rig: Rig) -> None:
    flood(rig, IN_LIST + 1)
    for key in rig.client.keys(rig.keys.prefix + "{finalize}:*"):
        assert 0 < rig.client.pttl(key) <= 86_400_000


def test_where_the_broker_is_elsewhere_all_are_rung_at_once(redis_url: str) -> None:
    rig = Rig(redis_url, "outbox")
    try:
        flood(rig, IN_LIST + 2)
        assert not rig.client.keys(rig.keys.prefix + "{finalize}:*")
        rung = rig.client.lrange(rig.keys.of_session("a:9", "outbox"), 0, -1)
        assert json.loads(rung[-1])["headers"]["id"] == "a09.final.log.0"
    finally:
        rig.close()
