"""turn_transcript.lua: the messages of a turn."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import TID, Rig


def said(rig: Rig, **named: Any) -> list[str]:
    word, _, _, *messages = rig.run("turn_transcript", **named)
    assert word == "SAID"
    return messages


def test_they_are_found_where_they_are_after_others_were_trimmed_away(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "old-1", "old-2", "old-3")
    rig.owned()
    rig.run("turn_begin", items=["asked"])
    assert said(rig) == ["asked"]
    rig.run("turn_end", item="answered", ending="completed", stop_reason="answered")
    rig.client.rpush(rig.names(TID)["history"], "of the next turn")
    assert said(rig) == ["asked", "answered"]

    rig.client.ltrim(rig.names(TID)["history"], 2, -1)
    rig.client.hset(rig.names(TID)["session"], "trimmed", 2)
    assert said(rig) == ["asked", "answered"]
    assert said(rig, most=1) == ["answered"]
    rig.client.hset(rig.names(TID)["session"], "trimmed", 9)
    assert said(rig) == []


def test_a_turn_that_has_not_begun_said_nothing(rig: Rig) -> None:
    assert said(rig) == []
    rig.client.rpush(rig.names(TID)["history"], "old")
    rig.owned()
    assert said(rig) == []


def test_a_review_has_a_history_of_its_own(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "of the session")
    rig.owned(turn_kind="review", isolated="1")
    rig.run("turn_begin", items=["seed", "asked"])
    assert said(rig) == ["asked"]


def test_its_calls_and_receipts_are_told_with_it(rig: Rig) -> None:
    assert rig.run("turn_transcript") == ["SAID", [], []]
    rig.client.hset(rig.names(TID)["trace"], "c1-0:tool", "read_note")
    rig.client.hset(rig.names(TID)["receipts"], "m1", "consumed 2")
    assert rig.run("turn_transcript") == ["SAID", ["c1-0:tool", "read_note"], ["m1", "consumed 2"]]
