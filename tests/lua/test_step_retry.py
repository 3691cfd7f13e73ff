"""step_retry.lua: the model is asked again."""

from __future__ import annotations

import json

from tests.lua.rig import TID, Rig


def test_each_retry_is_told_once(rig: Rig) -> None:
    rig.owned()
    for part in ("1:1", "1:2"):
        assert rig.run("step_retry", part=part, kind="rate_limited", wait_ms=1500, model="") == ["OK"]
    assert rig.events() == ["turn.active", "step.retried", "step.retried"]


def test_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_retry", owner="w2", kind="server", wait_ms=1, model="") == ["LOST"]
    assert rig.run("step_retry", fence=2, kind="server", wait_ms=1, model="") == ["LOST"]


def test_the_model_that_is_asked_then_is_named_where_there_are_several(rig: Rig) -> None:
    rig.owned()
    for part, model in (("1:1", ""), ("1:2", "openai:gpt-4.1")):
        rig.run("step_retry", part=part, kind="server", wait_ms=0, model=model)
    rows = rig.client.xrange(rig.names(TID)["events"])
    told = [json.loads(event["data"]).get("model") for _, event in rows if event["kind"] == "step.retried"]
    assert told == [None, "openai:gpt-4.1"]
