"""turn_messages.lua: the messages of a turn that has ended."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_they_are_those_that_the_transcript_has(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "old")
    assert rig.run("turn_messages") == ["SAID"]
    rig.owned()
    rig.run("turn_begin", items=["asked"])
    rig.run("turn_end", item="answered", ending="completed", stop_reason="answered")
    rig.client.rpush(rig.names(TID)["history"], "of the next turn")
    assert rig.run("turn_messages") == ["SAID", "asked", "answered"]
    assert rig.run("turn_messages", most=1) == ["SAID", "answered"]
    _, _, _, *transcript = rig.run("turn_transcript")
    assert transcript == ["asked", "answered"]


def test_a_review_has_a_history_of_its_own(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "of the session")
    rig.owned(turn_kind="review", isolated="1")
    rig.run("turn_begin", items=["seed", "asked"])
    assert rig.run("turn_messages") == ["SAID", "asked"]
