"""hold_place.lua: from now on nothing that changes something starts."""

from __future__ import annotations

import json

from tests.lua.rig import WRITE, Rig


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
