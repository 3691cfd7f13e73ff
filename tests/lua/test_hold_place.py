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
    assert not {"under_way", "asked"} & rig.turn().keys()
    rig.run("hold_release")
    assert (rig.status("c1-1"), rig.turn()["state"]) == ("dispatched", "active")


def test_a_turn_that_waits_can_be_held(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("hold_place", tid="t02") == ["HELD"]


def test_what_is_over_or_unknown_cannot(rig: Rig) -> None:
    assert rig.run("hold_place") == ["GONE"]
    rig.closing()
    assert rig.run("hold_place") == ["ENDED", "closing"]
