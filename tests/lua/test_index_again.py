"""index_again.lua: a turn was looked at."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_a_look_that_was_taken_puts_the_next_one_off(rig: Rig) -> None:
    rig.run("index_hasten", member="s t", after_ms=0)
    mark = rig.scripts.index_take(most=1, hold_ms=1_000, longest_ms=60_000).mark
    assert rig.scripts.index_again(member="s t", mark=mark, after_ms=5_000) == "OK"
    assert rig.client.zscore(rig.keys.index, "s t") == rig.now_ms + 5_000


def test_who_wants_it_sooner_meanwhile_is_not_overruled(rig: Rig) -> None:
    rig.run("index_hasten", member="s t", after_ms=0)
    mark = rig.scripts.index_take(most=1, hold_ms=1_000, longest_ms=60_000).mark
    rig.run("index_hasten", member="s t", after_ms=300)
    assert rig.run("index_again", member="s t", mark=mark, after_ms=5_000) == ["OTHERS"]
    assert rig.client.zscore(rig.keys.index, "s t") == rig.now_ms + 300


def test_what_was_dropped_does_not_come_back(rig: Rig) -> None:
    assert rig.run("index_again", member="s t", mark="5", after_ms=5_000) == ["OTHERS"]
    assert not rig.client.exists(rig.keys.index)
