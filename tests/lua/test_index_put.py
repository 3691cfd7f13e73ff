"""index_put.lua: when a turn is looked at."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_the_last_word_counts(rig: Rig) -> None:
    assert rig.run("index_put", member="s t", after_ms=10) == ["OK"]
    assert rig.run("index_put", member="s t", after_ms=20) == ["OK"]
    assert rig.client.zscore(rig.keys.index, "s t") == rig.now_ms + 20
