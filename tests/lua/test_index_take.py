"""index_take.lua: turns that are due."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_what_is_due_is_handed_out_once(rig: Rig) -> None:
    rig.run("index_hasten", member="s now", after_ms=0)
    rig.run("index_hasten", member="s later", after_ms=500)
    assert rig.run("index_take") == ["DUE", str(rig.now_ms + 1_000), 0, "s now"]
    assert rig.run("index_take")[2:] == [0]
    rig.pass_ms(1000)
    assert rig.run("index_take")[3:] == ["s later", "s now"]


def test_a_clock_that_stepped_back_puts_no_look_off(rig: Rig) -> None:
    rig.run("index_hasten", member="s t", after_ms=5_000)
    rig.pass_ms(-3_600_000)
    assert rig.run("index_take")[2:] == [1, "s t"]
