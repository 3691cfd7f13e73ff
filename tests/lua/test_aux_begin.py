"""aux_begin.lua: a model call beside the steps is tried once a mark."""

from __future__ import annotations

import json

from tests.lua.rig import LEASE_MS, TID, Rig
from tests.support.money import money


def test_a_reflection_is_paid_for_once_a_step(rig: Rig) -> None:
    rig.owned(max_reflections=2)
    budget = rig.names(TID)["budget"]
    assert rig.run("aux_begin", kind="reflection", mark="1") == ["GO"]
    assert rig.run("aux_begin", kind="reflection", mark="1") == ["DONE"]
    assert rig.client.hget(budget, "reflections_used") == "1"
    assert rig.run("aux_begin", kind="reflection", mark="2") == ["GO"]
    assert rig.run("aux_begin", kind="reflection", mark="3") == ["SPENT", "reflections"]
    assert rig.client.hget(budget, "reflections_used") == "2"


def test_a_compaction_costs_no_reflection(rig: Rig) -> None:
    rig.owned(max_reflections=0)
    assert rig.run("aux_begin", kind="compaction", mark="900") == ["GO"]
    assert rig.run("aux_begin", kind="compaction", mark="900") == ["DONE"]
    assert rig.turn()["aux_compaction"] == "900"


def test_only_the_owner_begins(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_begin", kind="reflection", owner="w2") == ["LOST"]
    assert rig.run("aux_begin", kind="reflection", fence=0) == ["LOST"]


def test_one_that_would_pass_the_budget_is_not_made(rig: Rig) -> None:
    rig.owned(max_reflections=9, max_total_tokens=100, max_cost_usd=0.5)
    assert rig.run("aux_begin", kind="reflection", mark="1", tokens=101) == ["SPENT", "tokens"]
    assert rig.run("aux_begin", kind="reflection", mark="2", tokens=9, usd="0.6") == ["SPENT", "cost"]
    assert rig.client.hget(rig.names(TID)["budget"], "reflections_used") is None
    assert rig.run("aux_begin", kind="reflection", mark="3", tokens=100, usd="0.5") == ["GO"]


def test_one_whose_worker_is_lost_is_charged(rig: Rig) -> None:
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70, usd="0.25")
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hmget(rig.names(TID)["budget"], "input_tokens", "cost_usd") == ["70", "0.25"]
    (spend,) = rig.client.lrange(rig.names(TID)["spends"], 0, -1)
    assert json.loads(spend) == {"kind": "lost", "step": 0, "input_tokens": 70, "cost_usd": 0.25, "estimated": True}
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w3", fence=2, most_lost=9)[0] == "GO"
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "70"


def test_one_whose_worker_is_lost_names_its_model(rig: Rig) -> None:
    spend = {"kind": "lost", "step": 0, "model": "m", "input_tokens": 60, "cost_usd": 0.5, "estimated": True}
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70, under_way=json.dumps([spend]))
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hmget(rig.names(TID)["budget"], "input_tokens", "cost_usd") == ["60", "0.5"]
    assert [json.loads(one) for one in rig.client.lrange(rig.names(TID)["spends"], 0, -1)] == [spend]


def test_one_that_was_committed_is_not_charged_again(rig: Rig) -> None:
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70)
    rig.run("aux_commit", kind="reflection", input=50)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "50"


def test_one_that_a_budget_does_not_allow_was_not_tried(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_begin", kind="reflection", mark="1", money=money(rig))[:2] == ["MONEY", "short"]
    assert "aux_reflection" not in rig.turn()
