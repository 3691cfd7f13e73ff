"""presence_forget.lua: a process that was found gone is watched no more."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_presence_look import join, listening, look


def test_one_that_is_gone_is_forgotten(rig: Rig) -> None:
    join(rig)
    look(rig)
    _, process, missed_at = look(rig)
    assert rig.run("presence_forget", process=process, absent_at=int(missed_at)) == ["OK"]
    assert not rig.client.hexists(rig.keys.presence, process)


def test_one_that_was_seen_again_is_not_forgotten(rig: Rig) -> None:
    join(rig)
    look(rig)
    _, process, missed_at = look(rig)
    with listening(rig, "h-1"):
        look(rig)
        rig.run("presence_forget", process=process, absent_at=int(missed_at))
    look(rig)
    assert look(rig)[1:2] == ["h-1"]
