"""turn_submit.lua: what SQL kept of a turn is given back with it."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import TID, WRITE, Rig
from tests.lua.test_capacity_keep import A1, B1, keep, submit


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
