"""call_claim.lua: the right to run a call."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, TID, TIMEOUT_MS, WRITE, Rig


def test_a_dispatched_call_is_taken_once(rig: Rig) -> None:
    rig.committed({"spec": "spec", "cap_ms": 700})
    reply = rig.run("call_claim")
    assert reply == ["GO", "spec", 700, TIMEOUT_MS, "read_only", "tool", 1, "0", "", 0, 0]
    assert rig.status() == "running"
    assert rig.run("call_claim", owner="w2") == ["DROP", "running"]
    rig.pass_ms(300)
    assert rig.run("call_claim") == ["GO", "spec", 700, TIMEOUT_MS - 300, "read_only", "tool", 1, "0", "", 300, 0]


def test_it_says_how_long_the_call_waited_for_a_worker(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(40)
    assert rig.run("call_claim")[-2:] == [40, 0]


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


def test_under_a_hold_reads_go_and_the_others_are_parked(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place")
    assert rig.run("call_claim") == ["DROP", "held"]
    assert (rig.status(), rig.turn()["state"]) == ("parked", "parked")
    assert rig.run("call_claim") == ["DROP", "parked"]
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.committed({})
    rig.run("hold_place")
    assert rig.run("call_claim")[0] == "GO"


def test_under_a_hold_that_ended_it_is_denied_and_the_next_wave_opens(rig: Rig) -> None:
    rig.committed(WRITE, {"index": 1, "wave": 2, **WRITE})
    rig.run("hold_place", timeout_ms=1)
    rig.pass_ms(1)
    assert rig.run("call_claim") == ["DROP", "held"]
    assert (rig.status(), rig.status("c1-1")) == ("denied", "denied")


def test_an_attempt_that_may_have_begun_is_not_said_to_be_denied(rig: Rig) -> None:
    rig.running(again="1", **WRITE)
    rig.pass_ms(LEASE_MS)
    rig.run("call_next_attempt")
    rig.run("hold_place", timeout_ms=1)
    rig.pass_ms(1)
    assert rig.run("call_claim", attempt=2) == ["DROP", "held"]
    assert rig.status() == "unknown"


def test_a_worker_takes_only_the_effects_it_serves(rig: Rig) -> None:
    rig.committed(WRITE)
    assert rig.run("call_claim", serves="read_only") == ["DROP", "unserved"]
    assert rig.run("call_claim", serves="network destructive") == ["DROP", "unserved"]
    assert rig.status() == "dispatched"
    assert rig.run("call_claim", serves="network local_write")[0] == "GO"


def test_a_worker_takes_only_calls_of_the_brains_it_has(rig: Rig) -> None:
    rig.committed({})
    rig.client.hset(rig.names(TID)["turn"], "brain", "lab")
    assert rig.run("call_claim", brains="shop laboratory") == ["DROP", "no_brain"]
    assert rig.status() == "dispatched"
    reply = rig.run("call_claim", brains="shop lab")
    assert (reply[0], reply[8]) == ("GO", "lab")
