"""lib/capacity.lua and lib/admit_turns.lua: what scripts that begin, park and end turns do about the fleet's room."""

from __future__ import annotations

import json

import pytest

from tests.lua.rig import Rig
from tests.lua.test_capacity_keep import A1, A2, A3, B1, keep, state, submit


@pytest.fixture(autouse=True)
def room_for_one(rig: Rig) -> None:
    keep(rig, 1)


def own(rig: Rig, turn: tuple[str, str]) -> None:
    sid, tid = turn
    assert rig.run("turn_claim", sid=sid, tid=tid, fence=0)[0] == "GO"


def end(rig: Rig, turn: tuple[str, str]) -> None:
    own(rig, turn)
    assert rig.run("turn_end", sid=turn[0], tid=turn[1])[0] == "ENDED"


def calls(rig: Rig, *commands: str) -> list[int]:
    """How often each was called since the statistics were reset."""
    told = rig.client.info("commandstats")
    return [told.get(f"cmdstat_{command}", {"calls": 0})["calls"] for command in commands]


def waits(rig: Rig, tenant: str) -> list[str]:
    return rig.client.zrange(rig.keys.room_line(tenant + "0"), 0, -1)


def test_a_turn_without_room_waits_and_its_deadline_with_it(rig: Rig) -> None:
    submit(rig, A1)
    assert submit(rig, B1) == ["QUEUED", 0, ""]
    told = rig.client.xrange(rig.names(B1[1], B1[0])["events"])
    assert json.loads(told[0][1]["data"]) == {"ahead": 0, "why": "room"}
    rig.pass_ms(50_000)
    end(rig, A1)
    assert state(rig, B1) == "active"
    assert rig.client.hget(rig.names(B1[1], B1[0])["budget"], "deadline") == str(rig.now_ms + 60_000)
    assert rig.client.zrange(rig.keys.room_live, 0, -1) == ["b:1 t04"]


def test_who_waits_for_a_models_limit_makes_room_and_goes_on_without_asking(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    own(rig, A1)
    waits = {"after_ms": 11_000, "wait_ms": 12_000, "why": "m:m: 60 requests a minute"}
    assert rig.run("turn_wait", sid=A1[0], tid=A1[1], **waits) == ["WAITS"]
    assert state(rig, B1) == "active"
    rig.pass_ms(6_000)
    rig.run("turn_sweep", sid=A1[0], tid=A1[1])
    assert rig.client.zrange(rig.keys.room_live, 0, -1) == ["b:1 t04"], "looked at, it waits still"
    rig.pass_ms(5_000)
    rig.run("turn_sweep", sid=A1[0], tid=A1[1])
    assert rig.client.zcard(rig.keys.room_live) == 2
    assert submit(rig, A2)[0] == "QUEUED"


def test_a_claim_before_its_time_takes_its_place_again(rig: Rig) -> None:
    submit(rig, A1)
    own(rig, A1)
    waits = {"after_ms": 11_000, "wait_ms": 12_000, "why": "m:m: 60 requests a minute"}
    rig.run("turn_wait", sid=A1[0], tid=A1[1], **waits)
    assert rig.client.zcard(rig.keys.room_live) == 0
    assert rig.run("turn_claim", sid=A1[0], tid=A1[1], fence=1, owner="w2")[0] == "GO"
    assert rig.client.zcard(rig.keys.room_live) == 1


def test_tenants_take_turns_however_many_sessions_one_has(rig: Rig) -> None:
    for turn in (A1, A2, A3, B1):
        submit(rig, turn)
    end(rig, A1)
    assert state(rig, A2) == "active", "it was first in line"
    end(rig, A2)
    assert (state(rig, B1), state(rig, A3)) == ("active", "queued")
    end(rig, B1)
    assert state(rig, A3) == "active"
    end(rig, A3)
    assert [key for key in rig.client.keys("*{room}*") if key != rig.keys.room] == []


def test_the_next_turn_of_a_session_stands_in_line_behind_others(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, ("a:1", "t09"))
    submit(rig, B1)
    end(rig, A1)
    assert (state(rig, B1), state(rig, ("a:1", "t09"))) == ("active", "queued")
    assert waits(rig, "a:") == ["a:1"]
    assert rig.client.hget(rig.keys.of_session("a:1", "session"), "live") == ""
    end(rig, B1)
    assert state(rig, ("a:1", "t09")) == "active"


def test_a_parked_turn_gives_its_room_and_goes_on_without_any(rig: Rig) -> None:
    submit(rig, A1)
    own(rig, A1)
    submit(rig, B1)
    call = {"id": "c1-0", "tool": "t", "effect": "network", "wave": 1, "spec": "{}", "hash": "h", "fp": "", "cap_ms": 9}
    plan = [
        call | {"lanes": "[]", "again": "0", "repairs": 0, "denied": "", "message": "", "ask": "why", "ask_ms": 9000}
    ]
    rig.run("step_commit", sid="a:1", tid="t01", item="{}", calls=json.dumps(plan))
    assert (state(rig, A1), state(rig, B1)) == ("parked", "active")
    rig.run("approval_decide", sid="a:1", tid="t01")
    assert (state(rig, A1), state(rig, B1)) == ("active", "active")
    assert submit(rig, A2)[0] == "QUEUED"
    end(rig, B1)
    assert state(rig, A2) == "queued", "the one that went on has the room"


def test_a_child_turn_asks_for_no_room(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, A2)
    assert submit(rig, A3, parent="a:1 t01 c1-0") == ["ACTIVE"]
    assert state(rig, A2) == "queued"


def test_a_child_turn_waits_for_what_its_session_has_waiting(rig: Rig) -> None:
    submit(rig, B1)
    submit(rig, A1)
    assert submit(rig, ("a:1", "t09"), parent="b:1 t04 c1-0")[:2] == ["QUEUED", 1]
    end(rig, B1)
    assert state(rig, A1) == "active"
    submit(rig, ("b:1", "t10"))
    end(rig, A1)
    assert state(rig, ("a:1", "t09")) == "active", "a child turn that is next asks for no room"


def test_a_turn_that_is_to_be_ended_begins_at_once(rig: Rig) -> None:
    submit(rig, A1)
    assert submit(rig, A2, lost_reason="Redis lost it") == ["ACTIVE"]


def test_a_session_that_waits_for_room_is_busy(rig: Rig) -> None:
    submit(rig, A1)
    assert submit(rig, B1, mode="reject") == ["QUEUED", 0, ""], "it has nothing else to do"
    assert submit(rig, ("b:1", "t09"), mode="reject") == ["BUSY", "t04"]
    assert submit(rig, ("b:1", "t08"), mode="replace") == ["QUEUED", 0, "t04"]


def test_a_cancelled_turn_waits_no_more(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    assert rig.run("turn_cancel", sid="b:1", tid="t04") == ["CANCELLED"]
    assert waits(rig, "b:") == []
    assert submit(rig, A2)[0] == "QUEUED"
    end(rig, A1)
    assert state(rig, A2) == "active"


def test_a_paused_session_loses_its_place_and_gets_another(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    submit(rig, A2)
    rig.run("session_pause", sid="b:1")
    end(rig, A1)
    assert (state(rig, B1), state(rig, A2)) == ("queued", "active")
    assert rig.run("session_resume", sid="b:1") == ["RESUMED", ""]
    end(rig, A2)
    assert state(rig, B1) == "active"


def test_a_paused_session_does_not_use_up_its_tenants_turn(rig: Rig) -> None:
    submit(rig, B1)
    for turn in (A1, A2, ("b:2", "t05")):
        submit(rig, turn)
    rig.run("session_pause", sid=A1[0])
    end(rig, B1)
    assert (state(rig, A1), state(rig, A2), state(rig, ("b:2", "t05"))) == ("queued", "active", "queued")


def test_a_sweeper_puts_a_turn_into_line_that_stands_in_none(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    rig.client.delete(rig.keys.room_line("b:1"), rig.keys.room_tenants)
    rig.run("turn_sweep", sid="b:1", tid="t04")
    assert waits(rig, "b:") == ["b:1"]
    rig.client.delete(rig.keys.room_live)
    rig.run("turn_sweep", sid="a:1", tid="t01")
    assert rig.client.zrange(rig.keys.room_live, 0, -1) == ["a:1 t01"]


def test_sessions_without_a_colon_are_one_tenant(rig: Rig) -> None:
    keep(rig, 3, 2)
    assert [submit(rig, (name, "t01"))[0] for name in ("x", "y", "z")] == ["ACTIVE", "ACTIVE", "QUEUED"]
    assert submit(rig, A1) == ["ACTIVE"]


def test_in_outbox_mode_the_bell_lies_with_the_session_that_gave_room(redis_url: str) -> None:
    rig = Rig(redis_url, "outbox")
    keep(rig, 1)
    submit(rig, A1)
    submit(rig, B1)
    rig.client.delete(rig.keys.of_session("a:1", "outbox"))
    end(rig, A1)
    lain = [
        json.loads(bell)["headers"]["id"] for bell in rig.client.lrange(rig.keys.of_session("a:1", "outbox"), 0, -1)
    ]
    assert [name for name in lain if name.startswith("t04")] == ["t04.advance.0"]
    rig.close()


def test_of_a_tenant_the_highest_priority_is_first_and_of_that_who_came_first(rig: Rig) -> None:
    submit(rig, ("b:1", "t01"))
    asked = [("a:1", "low"), ("a:2", "normal"), ("a:3", "high"), ("a:4", "normal"), ("a:5", "high")]
    told = [submit(rig, (sid, "t01"), priority=priority) for sid, priority in asked]
    assert [reply[1] for reply in told] == [0, 0, 0, 2, 1]
    assert waits(rig, "a:") == ["a:3", "a:5", "a:2", "a:4", "a:1"]


def test_the_next_turn_of_a_session_gives_it_its_place(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, A2)
    submit(rig, A3, priority="low")
    submit(rig, ("a:3", "t07"), priority="high")
    assert waits(rig, "a:") == ["a:2", "a:3"], "it is not the session's next one"
    submit(rig, ("a:3", "t08"), priority="high", mode="interrupt")
    assert waits(rig, "a:") == ["a:3", "a:2"]


def test_each_eighth_that_passes_others_is_of_a_lower_priority(rig: Rig) -> None:
    submit(rig, ("a:0", "t01"))
    for n in range(1, 31):
        submit(rig, (f"a:h{n:02d}", "t01"), priority="high")
    for sid, priority in [("a:n1", "normal"), ("a:n2", "normal"), ("a:l1", "low"), ("a:l2", "low")]:
        submit(rig, (sid, "t01"), priority=priority)
    began = ["a:0"]
    for _ in range(33):
        end(rig, (began[-1], "t01"))
        (place,) = rig.client.zrange(rig.keys.room_live, 0, -1)
        began.append(place.split()[0])
    assert [began.index(sid) for sid in ("a:n1", "a:l1", "a:n2")] == [8, 16, 24]
    assert rig.client.exists(rig.keys.room.replace("size", "passed")) == 1
    end(rig, (began[-1], "t01"))
    end(rig, (next(iter(rig.client.zrange(rig.keys.room_live, 0, -1))).split()[0], "t01"))
    assert [key for key in rig.client.keys("*{room}*") if key != rig.keys.room] == []


def test_each_of_those_who_come_in_at_once_is_counted_and_by_its_own_share(rig: Rig) -> None:
    submit(rig, ("c:9", "t01"))
    for tenant in "ab":
        for n in range(4):
            submit(rig, (f"{tenant}:{n}", "t01"))
    assert keep(rig, 9, 3, '{"b:":1}') == ["KEPT", 5, "a:0 b:0 a:1 a:2"]


def test_one_whose_place_was_there_already_is_not_counted_twice(rig: Rig) -> None:
    submit(rig, ("c:9", "t01"))
    for turn in (A1, A2, A3):
        submit(rig, turn)
    rig.client.zadd(rig.keys.room_live, {"a:1 t01": 0})
    rig.client.hset(rig.keys.room, mapping={"all": 3, "tenant": 3})
    end(rig, ("c:9", "t01"))
    assert [state(rig, turn) for turn in (A1, A2, A3)] == ["active", "active", "active"]


def test_the_room_is_looked_at_once_and_shares_only_where_one_may_be_full(rig: Rig) -> None:
    keep(rig, 3, 2)
    submit(rig, A1)
    rig.client.config_resetstat()
    submit(rig, A2)
    assert calls(rig, "zcard", "zlexcount") == [1, 0]
    submit(rig, ("b:2", "t05"))
    submit(rig, B1)
    own(rig, A1)
    rig.client.config_resetstat()
    assert rig.run("turn_end", sid=A1[0], tid=A1[1])[0] == "ENDED"
    assert state(rig, B1) == "active"
    assert calls(rig, "zcard", "zlexcount") == [1, 1]
