"""index_take.lua: turns that are due."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_what_is_due_is_handed_out_once(rig: Rig) -> None:
    rig.run("index_put", member="s now", after_ms=0)
    rig.run("index_put", member="s later", after_ms=500)
    assert rig.run("index_take") == ["DUE", rig.now_ms, "s now"]
    assert rig.run("index_take") == ["DUE", rig.now_ms]
    rig.pass_ms(1000)
    assert rig.run("index_take")[2:] == ["s later", "s now"]
