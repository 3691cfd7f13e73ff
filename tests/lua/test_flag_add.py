"""flag_add.lua: readiness for turns to come."""

from __future__ import annotations

import json

from tests.lua.rig import TID, Rig


def add(rig: Rig, flag: str, most: int = 10) -> list[str]:
    return rig.run("flag_add", flag=flag, timeout_ms=500, most=most)


def test_the_next_turn_takes_the_oldest(rig: Rig) -> None:
    assert add(rig, "f1") == ["ADDED"]
    assert add(rig, "f1") == ["ALREADY"]
    assert add(rig, "f2") == ["ADDED"]
    rig.active()
    assert rig.turn()["readiness"] == "f1"
    hold = json.loads(rig.turn()["holds"])["f1"]
    assert (hold["kind"], hold["ends"]) == ("readiness", rig.now_ms + 500)
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f2"]


def test_reviews_and_compactions_take_none(rig: Rig) -> None:
    add(rig, "f1")
    rig.active(turn_kind="review")
    assert rig.turn().get("holds", "") == ""
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f1"]


def test_there_is_a_most(rig: Rig) -> None:
    assert add(rig, "f1", most=1) == ["ADDED"]
    assert add(rig, "f2", most=1) == ["FULL"]


def test_they_last_as_long_as_their_session(rig: Rig) -> None:
    add(rig, "f1")
    for part in ("flags", "readiness"):
        assert 0 < rig.client.pttl(rig.names(TID)[part]) <= 50_000
    add(rig, "f2")
    rig.active()
    for part in ("flags", "readiness"):
        assert rig.client.pttl(rig.names(TID)[part]) == -1
