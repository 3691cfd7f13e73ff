"""step_delta.lua: text while it is written."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_each_text_is_told_once(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_delta", part="1:1", text="a") == ["OK"]
    assert rig.run("step_delta", part="1:2", text="b") == ["OK"]
    assert rig.events() == ["turn.active", "text.delta", "text.delta"]


def test_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_delta", owner="w2") == ["LOST"]
    assert rig.run("step_delta", fence=2) == ["LOST"]
