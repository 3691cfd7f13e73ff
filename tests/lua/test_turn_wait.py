"""turn_wait.lua: a turn waits for its model's limit with nobody's thread."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.celery.names import TURNS_QUEUE
from tests.lua.rig import TIMEOUT_MS, Rig

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
