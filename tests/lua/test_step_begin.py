"""step_begin.lua: the next step is paid for and attempted."""

from __future__ import annotations

import json

from tests.lua.rig import TID, Rig
from tests.support.money import held


def test_a_step_is_paid_once_however_often_it_is_attempted(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_begin") == ["GO", 1, 1]
    assert rig.run("step_begin", asked="1:2") == ["GO", 1, 2]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["steps_used"], budget["input_tokens"]) == ("1", "10")


def test_what_is_used_up_is_named(rig: Rig) -> None:
    rig.owned()
    budget = rig.names(TID)["budget"]
    rig.client.hset(budget, "steps_used", 2)
    assert rig.run("step_begin", asked="1:1") == ["SPENT", "steps"]
    rig.client.hset(budget, "cost_max_usd", "0.5")
    assert rig.run("step_begin", asked="1:2", estimate_usd="0.6") == ["SPENT", "cost"]
    rig.client.hset(budget, "tokens_max", 9)
    assert rig.run("step_begin", asked="1:3") == ["SPENT", "tokens"]
    assert rig.events()[1:] == ["budget"] * 3


def test_only_the_owner_begins_a_step(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_begin", fence=0) == ["LOST"]
    rig.run("turn_end")
    assert rig.run("step_begin") == ["LOST"]


def put(rig: Rig, *message_ids: str) -> None:
    for message_id in message_ids:
        rig.run("mailbox_put", message_id=message_id, item=f'{{"client_message_id":"{message_id}"}}')


def test_the_input_it_reads_is_consumed_with_it(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1", "m2", "m3")
    assert rig.run("step_begin", drain=2, items=['{"n":1}', '{"n":2}']) == ["GO", 1, 1]
    assert rig.client.hgetall(rig.names(TID)["receipts"]) == {"m1": "consumed 1", "m2": "consumed 1", "m3": "accepted"}
    assert rig.history() == [{"n": 1}, {"n": 2}]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1
    assert rig.events()[-3:] == ["input.consumed", "input.consumed", "step.started"]


def test_what_cannot_be_paid_consumes_nothing(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1")
    rig.client.hset(rig.names(TID)["budget"], "steps_used", 2)
    assert rig.run("step_begin", drain=1, items=["{}"]) == ["SPENT", "steps"]
    assert rig.run("step_begin", fence=0, drain=1, items=["{}"]) == ["LOST"]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1
    assert rig.history() == []


def test_the_newest_word_about_readiness_takes_the_place_of_the_older(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    wait = {"id": "ready:m1", "timeout_ms": 500, "policy": "deny", "reason": "so"}
    rig.run("step_begin", ready=json.dumps(wait))
    holds = json.loads(rig.turn()["holds"])
    assert {name: hold["kind"] for name, hold in holds.items()} == {"h1": "hold", "ready:m1": "readiness"}
    rig.run("step_begin", asked="1:2", ready="ready")
    assert list(json.loads(rig.turn()["holds"])) == ["h1"]


def test_a_review_reads_into_its_own_history(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    put(rig, "m1")
    rig.run("step_begin", drain=1, items=['{"n":1}'])
    assert rig.history() == []
    assert rig.client.lrange(rig.names(TID)["turn"] + ":history", 0, -1) == ['{"n":1}']


def test_a_context_that_fills_is_told_once_and_its_most_is_kept(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", full=72)
    rig.run("step_begin", asked="1:2", full=91)
    rig.run("step_begin", asked="1:3", full=80)
    assert rig.events().count("notice") == 1
    assert rig.turn()["context_full"] == "91"


def test_a_budget_that_is_not_granted_yet_begins_nothing(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1")
    assert held(rig, drain=1, items=["{}"])[:2] == ["MONEY", "short"]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1
