"""waits_expire.lua: what was waited for too long."""

from __future__ import annotations

from tests.lua.rig import WRITE, Rig

CANCEL = ["CANCEL", "the client gave no result in time"]


def test_a_result_that_does_not_come_times_out(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_park", timeout_ms=1_000)
    assert rig.run("waits_expire") == ["NONE"]
    rig.pass_ms(1_000)
    rig.bells("brainq.turns")
    assert rig.run("waits_expire") == ["EXPIRED"]
    assert (rig.status(), rig.turn()["state"]) == ("timed_out", "active")
    assert "within 1.0 s" in rig.history()[-1]["content"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_an_approval_nobody_gave_is_refused_and_the_next_wave_opens(rig: Rig) -> None:
    rig.committed({"ask_ms": 1_000, "ask_reason": "", **WRITE}, {"index": 1, "wave": 2, **WRITE})
    assert rig.status() == "parked"
    rig.pass_ms(1_000)
    assert rig.run("waits_expire") == ["EXPIRED"]
    assert rig.status() == "denied"
    assert "nobody approved it in time" in rig.client.hget(rig.names("t01")["trace"], "c1-0:msg")


def test_a_hold_follows_its_policy(rig: Rig) -> None:
    for policy, status in (("deny", "denied"), ("release", "dispatched")):
        rig.client.flushdb()
        rig.pass_ms(0)
        rig.active()
        rig.run("hold_place", policy=policy, timeout_ms=1_000)
        rig.run("turn_claim", fence=0)
        rig.commit(WRITE)
        assert rig.status() == "parked"
        rig.pass_ms(1_000)
        assert rig.run("waits_expire") == ["EXPIRED"]
        assert rig.status() == status


def test_a_hold_that_is_to_cancel_says_why_and_changes_nothing(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place", policy="cancel", timeout_ms=1_000, reason="not sure")
    rig.commit(WRITE)
    rig.pass_ms(1_000)
    assert rig.run("waits_expire") == ["CANCEL", "a hold was not released in time: not sure"]
    assert rig.status() == "parked"


def test_a_turn_that_is_over_or_cancelled_expires_nothing(rig: Rig) -> None:
    rig.running()
    rig.run("call_park", timeout_ms=1_000)
    rig.pass_ms(1_000)
    rig.run("turn_cancel")
    assert rig.run("waits_expire") == ["NONE"]
    assert rig.run("waits_expire", tid="t99") == ["NONE"]


def test_a_later_hold_that_denies_does_not_wait_for_the_one_that_parked_the_call(rig: Rig) -> None:
    rig.active()
    rig.run("hold_place", hold="h1", timeout_ms=60_000)
    rig.run("turn_claim", fence=0)
    rig.commit(WRITE)
    rig.run("hold_place", hold="h2", timeout_ms=1_000)
    rig.pass_ms(999)
    assert rig.run("waits_expire") == ["NONE"]
    rig.pass_ms(1)
    assert rig.run("turn_sweep")[2] == "expire"
    assert rig.run("waits_expire") == ["EXPIRED"]
    assert rig.status() == "denied"


def test_a_client_that_gives_no_result_ends_a_turn_that_it_cannot_come_back_to(rig: Rig) -> None:
    for cancels, reply, status in (("0", ["EXPIRED"], "timed_out"), ("1", CANCEL, "parked")):
        rig.client.flushdb()
        rig.pass_ms(0)
        rig.committed({"client_ms": 1_000, "client_args": "{}", **WRITE})
        assert rig.run("waits_expire", cancels=cancels) == ["NONE"]
        rig.pass_ms(1_000)
        assert rig.run("waits_expire", cancels=cancels) == reply
        assert rig.status() == status
    rig.run("turn_cancel")
    assert rig.run("waits_expire", cancels="1") == ["NONE"]


def test_what_others_are_waited_for_in_vain_goes_on_in_such_a_turn_too(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_park", timeout_ms=1_000)
    rig.pass_ms(1_000)
    assert rig.run("waits_expire", cancels="1") == ["EXPIRED"]
