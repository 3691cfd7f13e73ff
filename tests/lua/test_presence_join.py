"""presence_join.lua: a process that Redis hears listen is watched."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_presence_look import listening


def test_a_process_that_nobody_hears_listen_is_not_watched(rig: Rig) -> None:
    assert rig.run("presence_join", process="h-1") == ["DEAF"]
    assert not rig.client.exists(rig.keys.presence)


def test_one_that_listens_is_watched(rig: Rig) -> None:
    with listening(rig, "h-1"):
        assert rig.run("presence_join", process="h-1") == ["WATCHED"]
    assert rig.client.hget(rig.keys.presence, "h-1").endswith(" 0")


def test_one_that_is_heard_no_more_is_watched_no_more(rig: Rig) -> None:
    with listening(rig, "h-1"):
        rig.run("presence_join", process="h-1")
    assert rig.run("presence_join", process="h-1") == ["DEAF"]
    assert not rig.client.exists(rig.keys.presence)
