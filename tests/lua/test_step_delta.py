"""step_delta.lua: text while it is written."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_each_text_is_told_once(rig: Rig) -> None:
    rig.owned()
    for part, kind in (("1:1", "reasoning.delta"), ("1:1", "reasoning.delta"), ("1:2", "text.delta")):
        assert rig.run("step_delta", part=part, kind=kind, text="a") == ["OK"]
    assert rig.events() == ["turn.active", "reasoning.delta", "text.delta"]


def test_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_delta", owner="w2", kind="text.delta") == ["LOST"]
    assert rig.run("step_delta", fence=2, kind="text.delta") == ["LOST"]
