"""What SQL kept of a turn is given back to Redis with it, and so is its place in the capacity."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import TID, WRITE, Rig

# capacity_keep.lua: how large the room is, who is in it by mistake, and who may come in.


A1, A2, A3, B1 = ("a:1", "t01"), ("a:2", "t02"), ("a:3", "t03"), ("b:1", "t04")


def keep(
    rig: Rig, size: int, share: int | None = None, own: str = "{}", caps: str = "{}", cap_ms: int = 0
) -> list[Any]:
    """`cap_ms`: caps that are not told any more are lifted at once."""
    said: dict[str, Any] = {"size": size, "share": share or size, "own": own, "caps": caps, "cap_ms": cap_ms}
    return rig.run("capacity_keep", **said, most=100, keep_ms=600_000)


def submit(rig: Rig, turn: tuple[str, str], **given: Any) -> list[Any]:
    return rig.run("turn_submit", sid=turn[0], tid=turn[1], **given)


def state(rig: Rig, turn: tuple[str, str]) -> str:
    return rig.client.hget(rig.names(turn[1], turn[0])["turn"], "state")


def test_more_room_lets_in_who_waits_one_of_each_tenant_in_turn(rig: Rig) -> None:
    keep(rig, 1)
    assert submit(rig, A1) == ["ACTIVE"]
    assert [submit(rig, turn)[:2] for turn in (A2, A3, B1)] == [["QUEUED", 0], ["QUEUED", 1], ["QUEUED", 0]]
    rig.bells("brainq.turns")
    assert keep(rig, 3) == ["KEPT", 3, "a:2 b:1"]
    assert rig.bells("brainq.turns") == [["a:2", "t02", 0], ["b:1", "t04", 0]]
    assert state(rig, A3) == "queued"


def test_a_larger_share_lets_in_a_tenant_that_had_none_left(rig: Rig) -> None:
    keep(rig, 9, 1)
    submit(rig, A1)
    assert submit(rig, A2)[0] == "QUEUED"
    assert submit(rig, B1) == ["ACTIVE"], "another tenant's share is free"
    assert keep(rig, 9, 1) == ["KEPT", 2, ""]
    assert keep(rig, 9, 1, '{"a:":2}') == ["KEPT", 3, "a:2"]
    submit(rig, A3)
    assert state(rig, A3) == "queued"
    assert keep(rig, 9, 3) == ["KEPT", 4, "a:3"], "a share of its own that is said no more counts no more"


def test_a_tenant_without_a_share_left_stays_out_of_it_while_another_takes_the_last_place(rig: Rig) -> None:
    keep(rig, 1)
    for turn in (A1, A2, B1):
        submit(rig, turn)
    assert keep(rig, 2, 1) == ["KEPT", 2, "b:1"]
    assert rig.client.zrange(rig.keys.room_capped, 0, -1) == ["a:"]
    rig.run("turn_cancel", sid=A2[0], tid=A2[1])
    assert keep(rig, 2, 1) == ["KEPT", 2, ""]
    assert not rig.client.exists(rig.keys.room_capped), "nobody stands in its line any more"


def test_less_room_stops_nobody(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    assert keep(rig, 1) == ["KEPT", 2, ""]
    assert (state(rig, A1), state(rig, B1)) == ("active", "active")


def test_a_place_whose_turn_is_lost_is_free_again(rig: Rig) -> None:
    keep(rig, 1)
    submit(rig, A1)
    submit(rig, B1)
    rig.client.delete(rig.names(A1[1], A1[0])["turn"])
    assert keep(rig, 1) == ["KEPT", 1, "b:1"]
    assert state(rig, B1) == "active"


def test_places_are_looked_at_some_at_a_time(rig: Rig) -> None:
    keep(rig, 3)
    for turn in (A1, A2, B1):
        submit(rig, turn)
        rig.client.delete(rig.names(turn[1], turn[0])["turn"])
    room: dict[str, Any] = {"size": 3, "share": 3, "own": "{}", "caps": "{}", "cap_ms": 0, "keep_ms": 600_000}
    assert [rig.once("capacity_keep", most=2, **room)[1] for _ in range(2)] == [1, 0]


def test_how_large_it_is_is_forgotten_when_nobody_says_so(rig: Rig) -> None:
    keep(rig, 1)
    assert 0 < rig.client.pttl(rig.keys.room) <= 600_000


# turn_submit.lua: what SQL kept of a turn is given back with it.


def brake(kind: str, name: str, *, taken: bool = True, left_ms: int = 5_000) -> dict[str, Any]:
    return {
        "id": name,
        "kind": kind,
        "taken": taken,
        "timeout_ms": 60_000,
        "left_ms": left_ms,
        "policy": "deny",
        "reason": "why",
    }


def kept(*brakes: dict[str, Any], inputs: tuple[str, ...] = ()) -> str:
    items = [{"id": name, "item": json.dumps({"client_message_id": name, "text": name})} for name in inputs]
    return json.dumps({"brakes": brakes, "inputs": items})


def test_holds_stand_with_what_is_left_of_their_time_before_anything_can_run(rig: Rig) -> None:
    rig.active(kept=kept(brake("hold", "h1"), brake("hold", "h2", left_ms=1)))
    held = json.loads(rig.turn()["holds"])
    assert {name: hold["ends"] - rig.now_ms for name, hold in held.items()} == {"h1": 5_000, "h2": 1}
    assert {hold["kind"] for hold in held.values()} == {"hold"}
    assert rig.events()[:2] == ["hold.placed", "hold.placed"]
    rig.run("turn_claim", fence=0)
    rig.commit(WRITE)
    assert rig.status() == "parked"


def test_a_flag_that_the_turn_had_taken_is_its_readiness_hold_again(rig: Rig) -> None:
    rig.active(kept=kept(brake("flag", "f1"), brake("flag", "f2", taken=False)))
    assert list(json.loads(rig.turn()["holds"])) == ["f1"], "it takes no second flag"
    assert (rig.turn()["flag"], rig.turn()["readiness"]) == ("f1", "f1")
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f2"]
    assert rig.run("flag_release", flag="f1") == ["TAKEN", TID]
    assert rig.run("hold_release", hold="f1") == ["RELEASED"]


def test_a_flag_that_nobody_had_taken_is_taken_by_the_turn(rig: Rig) -> None:
    rig.active(kept=kept(brake("flag", "f1", taken=False)))
    held = json.loads(rig.turn()["holds"])
    assert held["f1"]["ends"] == rig.now_ms + 60_000


def test_flags_that_redis_knows_are_given_back_once(rig: Rig) -> None:
    rig.run("flag_add", flag="f1")
    rig.active(kept=kept(brake("flag", "f1", taken=False)))
    assert rig.run("turn_submit", tid="t02", kept=kept(brake("flag", "f1", taken=False)))[0] == "QUEUED"
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == []


def test_a_cancelled_turn_is_cancelled_whether_it_is_live_or_waits(rig: Rig) -> None:
    rig.active(kept=kept(brake("cancel", "cancel:t01")))
    assert (rig.turn()["cancel"], rig.turn()["cancel_reason"]) == ("1", "why")
    assert rig.run("turn_submit", tid="t02", kept=kept(brake("cancel", "cancel:t02")))[0] == "QUEUED"
    assert (rig.turn("t02")["state"], rig.turn("t02")["ending"]) == ("closing", "cancelled")


def test_input_is_in_the_mailbox_before_the_turn_is_rung(rig: Rig) -> None:
    rig.active(kept=kept(inputs=("m1", "m2")))
    items = rig.client.lrange(rig.names(TID)["mailbox"], 0, -1)
    assert [json.loads(item)["client_message_id"] for item in items] == ["m1", "m2"]
    assert rig.client.hgetall(rig.names(TID)["receipts"]) == {"m1": "accepted", "m2": "accepted"}


def test_a_turn_that_redis_knows_is_given_nothing(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", kept=kept(brake("hold", "h1"), inputs=("m1",))) == ["EXISTS", "active"]
    assert "holds" not in rig.turn()


def test_a_turn_that_is_cancelled_before_it_could_begin_leaves_its_session_as_it_was(rig: Rig) -> None:
    keep(rig, 1)
    submit(rig, A1)
    sid, tid = B1
    session = rig.names(tid, sid)["session"]
    rig.client.hset(session, "turns", 1)
    rig.client.pexpire(session, 60_000)
    assert submit(rig, B1, kept=kept(brake("cancel", f"cancel:{tid}")))[0] == "QUEUED"
    assert rig.client.hget(rig.names(tid, sid)["turn"], "ending") == "cancelled"
    assert rig.client.pttl(session) > 0
    assert rig.client.keys("*{room}:line:*") == []


def test_a_cancelled_turn_that_replaces_the_last_that_waited_lets_the_session_go(rig: Rig) -> None:
    keep(rig, 1)
    submit(rig, A1)
    sid, first = B1
    session = rig.names(first, sid)["session"]
    rig.client.hset(session, "turns", 1)
    assert submit(rig, B1)[0] == "QUEUED"
    assert rig.client.pttl(session) == -1
    replaced = submit(rig, (sid, "late"), mode="replace", kept=kept(brake("cancel", "cancel:late")))
    assert replaced == ["QUEUED", 1, first]
    assert rig.client.hget(rig.names("late", sid)["turn"], "ending") == "cancelled"
    assert rig.client.pttl(session) > 0
    assert rig.client.keys("*{room}:line:*") == []
