"""call_claim.lua: the right to run a call."""

from __future__ import annotations

from tests.lua.rig import TIMEOUT_MS, Rig


def test_a_dispatched_call_is_taken_once(rig: Rig) -> None:
    rig.committed({"spec": "spec", "cap_ms": 700})
    reply = rig.run("call_claim")
    assert reply == ["GO", "spec", 700, TIMEOUT_MS, "read_only", "tool", 1]
    assert rig.status() == "running"
    assert rig.run("call_claim", owner="w2") == ["DROP", "running"]


def test_wrong_doorbells_are_dropped(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("call_claim", attempt=2) == ["DROP", "stale"]
    assert rig.run("call_claim", call="c9-9") == ["DROP", "gone"]


def test_a_call_past_its_deadline_or_of_a_cancelled_turn_never_starts(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(TIMEOUT_MS)
    assert rig.run("call_claim") == ["DROP", "expired"]
    rig.run("turn_cancel")
    assert rig.run("call_claim") == ["DROP", "closed"]
    assert rig.status() == "dispatched"
