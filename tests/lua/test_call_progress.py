"""call_progress.lua: how far a running call is."""

from __future__ import annotations

import json

from tests.lua.rig import TID, Rig

SAID = json.dumps({"done": 1.0, "total": 3.0, "message": "rows"})


def told(rig: Rig) -> list[dict[str, object]]:
    rows = rig.client.xrange(rig.names(TID)["events"])
    return [json.loads(fields["data"]) for _, fields in rows if fields["kind"] == "call.progress"]


def test_each_word_is_one_event(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_progress", number=1, progress=SAID) == ["OK"]
    assert rig.run("call_progress", number=2, progress=json.dumps({"done": 2})) == ["OK"]
    assert told(rig) == [{"call": "c1-0", "done": 1, "total": 3, "message": "rows"}, {"call": "c1-0", "done": 2}]


def test_nothing_is_told_of_a_call_that_is_anothers_or_over(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_progress", owner="w2", number=1, progress=SAID) == ["LOST"]
    assert rig.run("call_progress", attempt=2, number=1, progress=SAID) == ["LOST"]
    rig.run("call_settle")
    assert rig.run("call_progress", number=1, progress=SAID) == ["LOST"]
    assert told(rig) == []


def test_a_call_that_waits_for_a_server_s_task_is_told_of_once_a_word(rig: Rig) -> None:
    rig.running()
    rig.run("call_park", token="t", timeout_ms=60_000, why="outside")
    assert rig.client.hget(rig.names(TID)["turn"], "state") == "parked"
    for _ in range(2):
        assert rig.run("call_progress", number=7, progress=SAID) == ["OK"]
    assert rig.run("call_progress", owner="w2", number=8, progress=SAID) == ["LOST"]
    assert len(told(rig)) == 1


def test_nothing_is_told_of_a_turn_that_ends(rig: Rig) -> None:
    rig.running()
    rig.client.hset(rig.names(TID)["turn"], "state", "closing")
    assert rig.run("call_progress", number=1, progress=SAID) == ["LOST"]
    assert told(rig) == []
