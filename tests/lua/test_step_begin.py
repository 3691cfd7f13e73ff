"""step_begin.lua: the next step is paid for and attempted."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


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
