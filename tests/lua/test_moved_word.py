"""moved_word.lua: what scripts are told of a tenant that is not here."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_a_word_is_written_changed_and_taken_away(rig: Rig) -> None:
    assert rig.run("moved_word", tenant="acme:", before="", after=" 2") == ["DONE"]
    assert rig.run("moved_word", tenant="acme:", before=" 2", after="b 2") == ["DONE"]
    assert rig.client.hgetall(rig.keys.moved) == {"acme:": "b 2"}
    assert rig.run("moved_word", tenant="acme:", before="b 2", after="") == ["DONE"]
    assert rig.client.exists(rig.keys.moved) == 0


def test_one_that_another_has_changed_stays(rig: Rig) -> None:
    rig.client.hset(rig.keys.moved, "acme:", "b 2")
    assert rig.run("moved_word", tenant="acme:", before="", after=" 3") == ["CHANGED", "b 2"]
    assert rig.run("moved_word", tenant="acme:", before=" 2", after="") == ["CHANGED", "b 2"]
    assert rig.client.hgetall(rig.keys.moved) == {"acme:": "b 2"}
