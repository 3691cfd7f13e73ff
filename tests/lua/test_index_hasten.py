"""index_hasten.lua: looks that may only come sooner."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_looks_come_sooner_and_never_later(rig: Rig) -> None:
    assert rig.run("index_hasten", members=["s1 t01"], after_ms=5_000) == ["OK"]
    assert rig.run("index_hasten", members=["s1 t01", "s1 t02"], after_ms=9_000) == ["OK"]
    assert rig.client.zscore(rig.keys.index, "s1 t01") == rig.now_ms + 5_000
    assert rig.client.zscore(rig.keys.index, "s1 t02") == rig.now_ms + 9_000
    rig.run("index_hasten", members=["s1 t01"], after_ms=1_000)
    assert rig.client.zscore(rig.keys.index, "s1 t01") == rig.now_ms + 1_000
