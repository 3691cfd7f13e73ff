"""aside_begin.lua: a model call beside the steps is tried once a mark."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_a_reflection_is_paid_for_once_a_step(rig: Rig) -> None:
    rig.owned(max_reflections=2)
    budget = rig.names(TID)["budget"]
    assert rig.run("aside_begin", kind="reflection", mark="1") == ["GO"]
    assert rig.run("aside_begin", kind="reflection", mark="1") == ["DONE"]
    assert rig.client.hget(budget, "reflections_used") == "1"
    assert rig.run("aside_begin", kind="reflection", mark="2") == ["GO"]
    assert rig.run("aside_begin", kind="reflection", mark="3") == ["SPENT"]
    assert rig.client.hget(budget, "reflections_used") == "2"


def test_a_compaction_costs_no_reflection(rig: Rig) -> None:
    rig.owned(max_reflections=0)
    assert rig.run("aside_begin", kind="compaction", mark="900") == ["GO"]
    assert rig.run("aside_begin", kind="compaction", mark="900") == ["DONE"]
    assert rig.turn()["aside_compaction"] == "900"


def test_only_the_owner_begins(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aside_begin", kind="reflection", owner="w2") == ["LOST"]
    assert rig.run("aside_begin", kind="reflection", fence=0) == ["LOST"]
