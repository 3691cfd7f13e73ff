"""turn_said.lua: the messages of a turn."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_they_are_found_where_they_are_after_others_were_trimmed_away(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "old-1", "old-2", "old-3")
    rig.owned()
    rig.run("turn_begin", items=["asked"])
    assert rig.run("turn_said") == ["SAID", "asked"]
    rig.run("turn_end", item="answered", ending="completed", stop_reason="answered")
    rig.client.rpush(rig.names(TID)["history"], "of the next turn")
    assert rig.run("turn_said") == ["SAID", "asked", "answered"]

    rig.client.ltrim(rig.names(TID)["history"], 2, -1)
    rig.client.hset(rig.names(TID)["session"], "trimmed", 2)
    assert rig.run("turn_said") == ["SAID", "asked", "answered"]
    assert rig.run("turn_said", most=1) == ["SAID", "answered"]
    rig.client.hset(rig.names(TID)["session"], "trimmed", 9)
    assert rig.run("turn_said") == ["SAID"]


def test_a_turn_that_has_not_begun_said_nothing(rig: Rig) -> None:
    assert rig.run("turn_said") == ["SAID"]
    rig.client.rpush(rig.names(TID)["history"], "old")
    rig.owned()
    assert rig.run("turn_said") == ["SAID"]


def test_a_review_has_a_history_of_its_own(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "of the session")
    rig.owned(turn_kind="review", isolated="1")
    rig.run("turn_begin", items=["seed", "asked"])
    assert rig.run("turn_said") == ["SAID", "asked"]
