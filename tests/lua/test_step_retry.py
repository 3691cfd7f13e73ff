"""step_retry.lua: the model is asked again."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_each_retry_is_told_once(rig: Rig) -> None:
    rig.owned()
    for part in ("1:1", "1:2"):
        assert rig.run("step_retry", part=part, kind="rate_limit", wait_ms=1500) == ["OK"]
    assert rig.events() == ["turn.active", "step.retried", "step.retried"]


def test_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_retry", owner="w2", kind="server", wait_ms=1) == ["LOST"]
    assert rig.run("step_retry", fence=2, kind="server", wait_ms=1) == ["LOST"]
