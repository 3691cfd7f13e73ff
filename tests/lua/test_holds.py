"""The scripts of holds, readiness flags and approvals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig

# hold_place.lua: from now on nothing that changes something starts.


def test_a_hold_stands_once(rig: Rig) -> None:
    rig.active()
    assert rig.run("hold_place", timeout_ms=500, reason="look") == ["HELD"]
    assert rig.run("hold_place", timeout_ms=900) == ["ALREADY"]
    stands = {"ends": rig.now_ms + 500, "policy": "deny", "reason": "look", "kind": "hold"}
    assert json.loads(rig.turn()["holds"]) == {"h1": stands}
    assert rig.events()[-1] == "hold.placed"


def test_reads_go_on_and_the_others_wait(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    rig.commit({}, {"index": 1, "wave": 2, **WRITE})
    assert rig.status() == "dispatched"
    rig.run("call_claim")
    rig.run("call_settle")
    assert (rig.status("c1-1"), rig.turn()["state"]) == ("parked", "parked")


def test_a_parked_turn_holds_nothing_that_only_its_running_needed(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    rig.commit({"spec": '{"arguments":{}}'}, {"index": 1, "wave": 2, "spec": '{"arguments":{"n":1}}', **WRITE})
    rig.run("call_claim")
    rig.run("call_settle")
    fields = rig.client.hgetall(rig.names("t01")["trace"])
    assert {name for name in fields if name.endswith((":spec", ":cap_ms"))} == {"c1-1:spec", "c1-1:cap_ms"}
    assert {"c1-0:msg", "c1-0:status", "c1-0:owner"} <= fields.keys()
    assert not {"under_way", "asked", "thinking", "lease_until", "rung_at", "died_alone"} & rig.turn().keys()
    assert not [field for field in rig.client.hgetall(rig.names("t01")["budget"]) if field.startswith("claim:")]
    rig.run("hold_release")
    assert (rig.status("c1-1"), rig.turn()["state"]) == ("dispatched", "active")


def test_a_turns_hashes_are_tables_while_it_runs_and_lists_while_it_is_parked(rig: Rig) -> None:
    def encodings() -> set[object]:
        return {rig.client.object("encoding", rig.names("t01")[key]) for key in ("turn", "trace")}

    rig.owned()
    rig.run("hold_place")
    rig.commit({}, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim")
    assert encodings() == {"hashtable"}
    rig.run("call_settle")
    assert encodings() == {"listpack"}
    assert "long" not in rig.turn()


def test_a_parked_turn_keeps_how_often_something_was_written(rig: Rig) -> None:
    rig.owned()
    rig.commit(WRITE, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim", serves="local_write")
    rig.run("hold_place")
    rig.run("call_settle")
    assert (rig.turn()["state"], rig.turn()["write_epoch"]) == ("parked", "1")


def test_a_parked_turns_events_fit_and_go_on(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    rig.commit({}, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim")
    key = rig.names("t01")["events"]
    running = rig.client.memory_usage(key)
    rig.run("call_settle")
    assert rig.client.memory_usage(key) < running
    rig.run("hold_release")
    ids = [number for number, _ in rig.client.xrange(key)]
    assert ids == [f"{number}-0" for number in range(1, len(ids) + 1)]
    assert rig.events()[-2:] == ["call.dispatched", "turn.resumed"]


def test_a_turn_that_waits_can_be_held(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("hold_place", tid="t02") == ["HELD"]


def test_what_is_over_or_unknown_cannot(rig: Rig) -> None:
    assert rig.run("hold_place") == ["GONE"]
    rig.closing()
    assert rig.run("hold_place") == ["ENDED", "closing"]


# hold_release.lua: what waited goes on.


def held(rig: Rig, *holds: str) -> None:
    rig.owned()
    for hold in holds:
        rig.run("hold_place", hold=hold, timeout_ms=60_000)
    rig.commit(WRITE)
    assert rig.status() == "parked"


def test_the_last_one_lets_the_calls_go(rig: Rig) -> None:
    held(rig, "h1", "h2")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.status() == "parked"
    rig.pass_ms(1_000)
    assert rig.run("hold_release", hold="h2") == ["RELEASED"]
    assert (rig.status(), rig.turn()["state"], rig.turn()["holds"]) == ("dispatched", "active", "")
    deadline = int(rig.client.hget(rig.names("t01")["budget"], "deadline"))
    assert deadline == rig.now_ms + TIMEOUT_MS


def test_one_that_does_not_stand_is_absent(rig: Rig) -> None:
    assert rig.run("hold_release") == ["GONE"]
    held(rig, "h1")
    assert rig.run("hold_release", hold="h9") == ["ABSENT"]


def test_before_any_call_it_only_goes(rig: Rig) -> None:
    rig.active()
    rig.run("hold_place")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.events()[-1] == "hold.released"


def test_nothing_is_told_of_a_turn_that_is_over(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    rig.run("turn_end")
    told = rig.events()
    assert rig.run("hold_release") == ["ABSENT"]
    assert rig.events() == told


def test_a_cancelled_turn_opens_nothing(rig: Rig) -> None:
    held(rig, "h1")
    rig.run("turn_cancel")
    assert rig.run("hold_release") == ["RELEASED"]
    assert rig.status() == "parked"


# flag_add.lua: readiness for turns to come.


def add(rig: Rig, flag: str, most: int = 10) -> list[str]:
    return rig.run("flag_add", flag=flag, timeout_ms=500, most=most)


def test_the_next_turn_takes_the_oldest(rig: Rig) -> None:
    assert add(rig, "f1") == ["ADDED"]
    assert add(rig, "f1") == ["ALREADY"]
    assert add(rig, "f2") == ["ADDED"]
    rig.active()
    assert rig.turn()["readiness"] == "f1"
    hold = json.loads(rig.turn()["holds"])["f1"]
    assert (hold["kind"], hold["ends"]) == ("readiness", rig.now_ms + 500)
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f2"]


def test_reviews_and_compactions_take_none(rig: Rig) -> None:
    add(rig, "f1")
    rig.active(turn_kind="review")
    assert rig.turn().get("holds", "") == ""
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f1"]


def test_there_is_a_most(rig: Rig) -> None:
    assert add(rig, "f1", most=1) == ["ADDED"]
    assert add(rig, "f2", most=1) == ["FULL"]


def test_they_last_as_long_as_their_session(rig: Rig) -> None:
    add(rig, "f1")
    for part in ("flags", "readiness"):
        assert 0 < rig.client.pttl(rig.names(TID)[part]) <= 50_000
    add(rig, "f2")
    rig.active()
    for part in ("flags", "readiness"):
        assert rig.client.pttl(rig.names(TID)[part]) == -1


# flag_release.lua: a session says that it is ready.


def flag_release_add(rig: Rig) -> None:
    rig.run("flag_add", timeout_ms=500)


def test_a_flag_no_turn_has_taken_makes_its_turn_ready(rig: Rig) -> None:
    flag_release_add(rig)
    assert rig.run("flag_release") == ["READY"]
    assert rig.run("flag_release") == ["READY"]
    rig.active()
    assert rig.turn().get("holds", "") == ""
    assert rig.run("flag_release") == ["GONE"]


def test_one_that_was_taken_is_a_hold_of_that_turn(rig: Rig) -> None:
    flag_release_add(rig)
    rig.active()
    assert rig.run("flag_release") == ["TAKEN", "t01"]


def test_it_goes_with_its_turn(rig: Rig) -> None:
    flag_release_add(rig)
    rig.closing()
    assert rig.run("flag_release") == ["GONE"]
    assert rig.client.exists(rig.names(TID)["flags"]) == 0


# approval_decide.lua: one decision, for the arguments it was made about.


ASK: dict[str, Any] = {"ask_ms": 60_000, "ask_reason": "dear", **WRITE}


def test_an_approved_call_goes_on(rig: Rig) -> None:
    rig.committed(ASK)
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "people")
    assert "approval.requested" in rig.events()
    assert rig.run("approval_decide") == ["APPROVED"]
    assert (rig.status(), rig.turn()["state"]) == ("dispatched", "active")
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:ask_by") == "ann"


def test_a_denied_call_says_why_and_the_model_goes_on(rig: Rig) -> None:
    rig.committed(ASK)
    rig.bells("brainq.turns")
    assert rig.run("approval_decide", decision="denied", comment="not today") == ["DENIED"]
    assert rig.status() == "denied"
    assert "a person refused it: not today" in rig.history()[-1]["content"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


@pytest.mark.parametrize("first", ["approved", "denied"])
def test_the_first_decision_stands(rig: Rig, first: str) -> None:
    rig.committed(ASK)
    rig.run("approval_decide", decision=first)
    for second in ("approved", "denied"):
        assert rig.run("approval_decide", decision=second) == ["DECIDED", first]


def test_it_is_bound_to_the_arguments(rig: Rig) -> None:
    rig.committed(ASK)
    assert rig.run("approval_decide", expect="of others") == ["STALE"]
    assert rig.status() == "parked"


def test_an_edit_is_what_runs(rig: Rig) -> None:
    rig.committed(ASK)
    edit = {"spec": '{"n":2}', "hash": "h2", "fp": "f2", "lanes": '["A"]'}
    assert rig.run("approval_decide", edit=json.dumps(edit)) == ["APPROVED"]
    reply = rig.run("call_claim")
    assert (reply[1], reply[7]) == ('{"n":2}', "1")


def test_one_decided_too_late_is_refused(rig: Rig) -> None:
    rig.committed(ASK)
    rig.pass_ms(60_000)
    assert rig.run("approval_decide") == ["EXPIRED"]
    assert rig.status() == "denied"
    assert rig.run("approval_decide") == ["DECIDED", "expired"]


def test_a_call_of_a_later_wave_meets_the_decision_when_its_turn_comes(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2, **ASK})
    assert rig.run("approval_decide", call="c1-1") == ["APPROVED"]
    rig.run("call_claim")
    assert rig.run("call_settle") == ["SETTLED"]


def test_several_calls_of_one_reply_are_decided_each_for_itself(rig: Rig) -> None:
    read = {"ask_ms": 60_000, "ask_reason": ""}
    rig.committed(read, {"index": 1, **read})
    rig.run("approval_decide", call="c1-1", decision="denied")
    assert (rig.status("c1-0"), rig.status("c1-1"), rig.turn()["state"]) == ("parked", "denied", "parked")
    rig.run("approval_decide")
    assert (rig.status(), rig.turn()["state"]) == ("dispatched", "active")


def test_nothing_is_decided_for_a_turn_that_is_cancelled_or_over(rig: Rig) -> None:
    rig.committed(ASK)
    assert rig.run("approval_decide", call="c9-9") == ["GONE"]
    rig.run("turn_cancel")
    assert rig.run("approval_decide") == ["ENDED", "cancelled"]
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert rig.run("approval_decide") == ["DECIDED", "void"]


def test_a_call_refused_as_a_repeat_asks_nobody_any_more(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["guard"], "f", "0")
    rig.commit({**ASK, "fp": "f"})
    assert rig.status() == "denied"
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:ask") == "void"
