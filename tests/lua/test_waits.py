"""The scripts of turns that wait, and of waits that expire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.celery.names import TURNS_QUEUE
from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig

# turn_wait.lua: a turn waits for its model's limit with nobody's thread.


WAIT: dict[str, Any] = {
    "after_ms": 11_000,
    "wait_ms": 12_000,
    "why": "m:m: 60 requests a minute",
    "stands": "m:m\ns1 t01 1 step",
}


def test_the_turn_is_let_go_and_rung_when_its_time_comes(rig: Rig) -> None:
    rig.owned()
    rig.bells(TURNS_QUEUE)
    rig.run("step_begin")
    assert rig.run("turn_wait", **WAIT) == ["WAITS"]
    assert rig.turn()["owner"] == ""
    rig.pass_ms(6_000)
    assert rig.run("turn_sweep")[0] == "LOOK"
    assert (rig.bells(TURNS_QUEUE), rig.look_in_ms()) == ([], 5_000)
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert [bell[2] for bell in rig.bells(TURNS_QUEUE)] == [1]
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert "waits_for" not in rig.turn()


def test_nothing_is_charged_for_it_and_readers_are_told(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", estimate=500)
    rig.run("turn_wait", **WAIT)
    rig.run("turn_claim", owner="w2", fence=1)
    assert rig.client.lrange(rig.names("t01")["spends"], 0, -1) == []
    assert rig.client.hget(rig.names("t01")["budget"], "steps_used") == "1"
    told = [event for _, event in rig.client.xrange(rig.names("t01")["events"]) if event["kind"] == "notice"]
    assert [json.loads(event["data"]) for event in told] == [{"waits_for": WAIT["why"], "wait_ms": 12_000}]


def test_what_another_model_was_asked_before_is_charged(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", estimate=500)
    lost = '[{"kind":"lost","step":1,"input_tokens":40,"output_tokens":2}]'
    rig.run("turn_wait", **WAIT, lost=lost)
    rig.run("turn_claim", owner="w2", fence=1)
    assert rig.client.llen(rig.names("t01")["spends"]) == 1
    assert rig.client.hmget(rig.names("t01")["budget"], "input_tokens", "output_tokens") == ["40", "2"]


def test_a_call_beside_the_steps_is_begun_again_and_paid_once(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_begin", kind="reflection", mark="1") == ["GO"]
    rig.run("turn_wait", **WAIT)
    rig.run("turn_claim", owner="w2", fence=1)
    assert rig.run("aux_begin", owner="w2", fence=2, kind="reflection", mark="1") == ["GO"]
    assert rig.client.hget(rig.names("t01")["budget"], "reflections_used") == "1"


def test_only_the_owner_lets_it_go(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_wait", owner="w2", **WAIT) == ["LOST"]
    assert rig.run("turn_wait", fence=2, **WAIT) == ["LOST"]


def test_a_cancel_does_not_wait(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_wait", **WAIT)
    rig.bells(TURNS_QUEUE)
    assert rig.run("turn_cancel") == ["REQUESTED"]
    assert rig.bells(TURNS_QUEUE) != []


def test_a_clock_that_stepped_back_makes_nobody_wait_longer(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_wait", **WAIT)
    rig.bells(TURNS_QUEUE)
    rig.pass_ms(-3_600_000)
    rig.run("turn_sweep")
    rig.pass_ms(11_000)
    rig.run("turn_sweep")
    assert len(rig.bells(TURNS_QUEUE)) == 1


def deadline_in_ms(rig: Rig) -> int:
    return int(rig.client.hget(rig.names("t01")["budget"], "deadline")) - rig.now_ms


def test_the_time_of_a_turn_without_a_reply_begins_when_its_place_comes(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin")
    rig.pass_ms(30_000)
    given: dict[str, Any] = WAIT | {"after_ms": 599_000, "wait_ms": 600_000}
    rig.run("turn_wait", **given)
    rig.pass_ms(400_000)
    assert rig.run("turn_sweep")[2] == ""
    rig.pass_ms(199_000)
    assert deadline_in_ms(rig) == TIMEOUT_MS
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    rig.run("turn_wait", owner="w2", fence=2, **WAIT)
    assert deadline_in_ms(rig) == TIMEOUT_MS + WAIT["after_ms"]
    rig.pass_ms(WAIT["after_ms"] + TIMEOUT_MS)
    assert rig.run("turn_sweep")[2] == "end"  # nobody came: it ends by its deadline, as any


@pytest.mark.parametrize("waited_ms", [2_000, 11_000, 14_000])
def test_it_begins_with_the_claim_however_early_or_late_that_is(rig: Rig, waited_ms: int) -> None:
    rig.owned()
    rig.run("turn_wait", **WAIT)
    rig.pass_ms(waited_ms)
    rig.run("turn_sweep")
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert deadline_in_ms(rig) == TIMEOUT_MS
    rig.run("turn_sweep")
    assert deadline_in_ms(rig) == TIMEOUT_MS


def test_whoever_comes_after_the_deadline_ends_the_turn(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_wait", **WAIT)
    rig.pass_ms(WAIT["after_ms"] + TIMEOUT_MS + 1)
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert deadline_in_ms(rig) == -1


@pytest.mark.parametrize("waited_ms", [2_000, 11_000])
def test_a_later_steps_wait_is_no_part_of_the_turns_time(rig: Rig, waited_ms: int) -> None:
    rig.owned()
    rig.client.hset(rig.names("t01")["turn"], "step", "1")
    rig.pass_ms(5_000)
    before = deadline_in_ms(rig)
    rig.run("turn_wait", **WAIT)
    assert deadline_in_ms(rig) == before + WAIT["after_ms"]
    assert rig.run("turn_wait", **WAIT) == ["LOST"]
    assert deadline_in_ms(rig) == before + WAIT["after_ms"]
    rig.pass_ms(waited_ms)
    rig.run("turn_sweep")
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert deadline_in_ms(rig) == before


def test_what_comes_late_to_a_later_step_is_of_its_time(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names("t01")["turn"], "step", "1")
    before = deadline_in_ms(rig)
    rig.run("turn_wait", **WAIT)
    rig.pass_ms(WAIT["after_ms"] + 3_000)
    rig.run("turn_sweep")
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert deadline_in_ms(rig) == before - 3_000


# turn_waited.lua: a turn that waited for longer than it may ends before it begins.


WAIT_MS = 5_000


def sweep(rig: Rig, tid: str = "t02") -> str:
    return rig.run("turn_sweep", tid=tid)[2]


def test_its_wait_is_over_when_it_has_waited_so_long(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02", max_wait_ms=WAIT_MS)
    rig.run("mailbox_put", tid="t02", item='{"client_message_id":"m1"}')
    assert rig.look_in_ms("t02") == WAIT_MS + 1
    rig.pass_ms(WAIT_MS - 1)
    assert rig.run("turn_waited", tid="t02") == ["NONE"]
    assert sweep(rig) == ""
    rig.pass_ms(1)
    assert sweep(rig) == "waited"
    assert rig.run("turn_waited", tid="t02", text="too late") == ["ENDED"]
    ended = rig.turn("t02")
    assert [ended[name] for name in ("state", "ending", "stop_reason", "text")] == [
        *("closing", "timed_out", "waited", "too late")
    ]
    assert rig.client.hgetall(rig.names("t02")["receipts"]) == {"m1": "bounced"}
    assert rig.client.llen(rig.names(TID)["waiting"]) == 0
    assert rig.bells("brainq.finalize") == [["s1", "t02", "log"]]
    assert rig.turn()["state"] == "active", "the live one goes on"


def test_one_that_waits_for_room_is_not_begun_by_the_sweep_that_finds_it(rig: Rig) -> None:
    rig.run("capacity_keep", size=1, share=1, own="{}", caps="{}", cap_ms=60_000, most=9, keep_ms=600_000)
    rig.active()
    rig.run("turn_submit", sid="s2", tid="t02", max_wait_ms=WAIT_MS)
    rig.client.delete(rig.keys.room_live)
    rig.pass_ms(WAIT_MS)
    assert rig.run("turn_sweep", sid="s2", tid="t02")[2] == "waited"
    assert rig.run("turn_waited", sid="s2", tid="t02") == ["ENDED"]
    assert rig.client.zcard(rig.keys.room_line("s2")) == 0
    assert rig.lifetimes()[rig.names("t02", "s2")["turn"]] == -1, "its finalizer ends its keys"


def test_a_turn_that_has_begun_has_waited_enough(rig: Rig) -> None:
    rig.active(max_wait_ms=WAIT_MS)
    rig.pass_ms(WAIT_MS + 1)
    assert sweep(rig, TID) == ""
    assert rig.run("turn_waited") == ["NONE"]
    assert rig.turn()["state"] == "active"


def test_a_turn_without_the_limit_waits_as_long_as_it_takes(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.pass_ms(86_400_000)
    assert sweep(rig) == ""
    assert rig.run("turn_waited", tid="t02") == ["NONE"]


# waits_expire.lua: what was waited for too long.


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
