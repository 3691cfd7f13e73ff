"""history_compact.lua: the oldest messages give way to a summary."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import TID, Rig


def said(rig: Rig, *names: str) -> None:
    rig.client.rpush(rig.names(TID)["history"], *(json.dumps({"n": name}) for name in names))


def compact(rig: Rig, **given: Any) -> list[Any]:
    chosen: dict[str, Any] = {"expect": 4, "drop": 2, "items": ['{"n":"summary"}'], "why": "", **given}
    return rig.run("history_compact", **chosen)


def names(rig: Rig) -> list[str]:
    return [message["n"] for message in rig.history()]


def test_the_oldest_go_and_the_front_comes(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    rig.bells("brainq.turns")
    assert compact(rig, items=['{"n":"summary"}', '{"n":"user"}'], input=9, output=1) == ["COMPACTED"]
    assert "unsummarised" not in rig.turn()
    assert names(rig) == ["summary", "user", "c", "d"]
    assert rig.turn()["compacted"] == "1"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "9"
    assert rig.events()[-1] == "compaction"


def test_the_place_of_a_turn_is_counted_on(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c")
    rig.run("turn_begin", items=['{"n":"mine"}'])
    assert rig.turn()["begin_at"] == "3"
    assert compact(rig, drop=3) == ["COMPACTED"]
    trimmed = int(rig.client.hget(rig.names(TID)["session"], "trimmed"))
    assert names(rig)[3 - trimmed] == "mine"


def test_a_history_that_changed_is_left_alone(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d", "e")
    assert compact(rig) == ["CHANGED"]
    assert names(rig) == ["a", "b", "c", "d", "e"]


def test_only_the_owner_compacts(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    assert compact(rig, owner="w2") == ["LOST"]
    assert compact(rig, fence=0) == ["LOST"]
    assert names(rig) == ["a", "b", "c", "d"]


def test_reads_that_are_gone_may_be_repeated(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    guard = rig.names(TID)["guard"]
    rig.client.hset(guard, mapping={"f1": 0, "f2": 0, "f3": 1})
    assert compact(rig, forget="f1 f3") == ["COMPACTED"]
    assert rig.client.hgetall(guard) == {"f2": "0"}


def test_a_review_compacts_its_own_history(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    said(rig, "kept")
    own = rig.names(TID)["turn"] + ":history"
    rig.client.rpush(own, *(json.dumps({"n": name}) for name in "abcd"))
    assert compact(rig) == ["COMPACTED"]
    assert names(rig) == ["kept"]
    assert [json.loads(item)["n"] for item in rig.client.lrange(own, 0, -1)] == ["summary", "c", "d"]
    assert rig.turn()["trimmed"] == "1"
    assert rig.client.hget(rig.names(TID)["session"], "trimmed") is None


def test_what_processes_know_of_the_history_is_void(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    session = rig.names(TID)["session"]
    rig.client.hset(session, "history_stamp", "7")
    assert compact(rig) == ["COMPACTED"]
    assert rig.client.hget(session, "history_stamp") not in (None, "7")


def test_why_no_model_wrote_the_summary_is_kept(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    assert compact(rig, why="refused") == ["COMPACTED"]
    assert rig.turn()["unsummarised"] == "refused"
