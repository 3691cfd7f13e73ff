"""index_looked.lua: turns were looked at."""

from __future__ import annotations

from tests.lua.rig import Rig


def taken(rig: Rig, *members: str) -> str:
    """The mark that these were taken with, when they were due."""
    rig.run("index_hasten", members=members, after_ms=0)
    due = rig.scripts.index_take(most=10, hold_ms=1_000)
    assert due.members == members
    return due.mark


def test_looks_that_were_taken_put_the_next_ones_off_or_are_the_last(rig: Rig) -> None:
    mark = taken(rig, "s t1", "s t2", "s t3")
    looked = ["s t1", "5000", "s t2", "-1", "s t3", "0"]
    assert rig.scripts.index_looked(mark=mark, looked=looked) == "OK"
    assert rig.client.zrange(rig.keys.index, 0, -1, withscores=True) == [
        ("s t3", rig.now_ms),
        ("s t1", rig.now_ms + 5_000),
    ]


def test_who_wants_it_sooner_meanwhile_is_not_overruled(rig: Rig) -> None:
    mark = taken(rig, "s t1", "s t2")
    rig.run("index_hasten", members=["s t1", "s t2"], after_ms=300)
    assert rig.run("index_looked", mark=mark, looked=["s t1", 5_000, "s t2", -1]) == ["OK"]
    for member in ("s t1", "s t2"):
        assert rig.client.zscore(rig.keys.index, member) == rig.now_ms + 300


def test_what_was_dropped_does_not_come_back(rig: Rig) -> None:
    assert rig.run("index_looked", mark="5", looked=["s t", 5_000]) == ["OK"]
    assert not rig.client.exists(rig.keys.index)
