"""The scripts of the index of turns that are due."""

from __future__ import annotations

from tests.lua.rig import SID, TID, Rig

# index_take.lua: turns that are due.


def test_what_is_due_is_handed_out_once(rig: Rig) -> None:
    rig.run("index_hasten", members=["s now"], after_ms=0)
    rig.run("index_hasten", members=["s later"], after_ms=500)
    assert rig.run("index_take", hold_ms=1_000) == ["DUE", 0, "s now"]
    assert rig.client.zscore(rig.keys.index, "s now") == rig.now_ms + 1_000
    assert rig.run("index_take")[1:] == [0]
    rig.pass_ms(1000)
    assert rig.run("index_take")[2:] == ["s later", "s now"]


def test_a_clock_that_stepped_back_puts_no_look_off(rig: Rig) -> None:
    rig.run("index_hasten", members=["s t"], after_ms=5_000)
    rig.run("index_hasten", members=["s far"], after_ms=900_000)
    assert rig.run("index_take")[1:] == [0]
    rig.pass_ms(-3_600_000)
    assert rig.run("index_take")[2:] == []
    assert rig.client.zrange(rig.keys.index, 0, -1, withscores=True) == [
        ("s t", rig.now_ms + 5_000),
        ("s far", rig.now_ms + 900_000),
    ]
    rig.pass_ms(5_000)
    assert rig.run("index_take")[1:] == [0, "s t"]


def test_how_many_looks_were_put_off_by_it_is_said_once(rig: Rig) -> None:
    rig.run("index_hasten", members=["s t"], after_ms=5_000)
    rig.run("index_take")
    rig.pass_ms(-5_000)
    assert rig.once("index_take")[1] == 1
    assert rig.once("index_take")[1] == 0


# index_hasten.lua: looks that may only come sooner.


def test_looks_come_sooner_and_never_later(rig: Rig) -> None:
    assert rig.run("index_hasten", members=["s1 t01"], after_ms=5_000) == ["OK"]
    assert rig.run("index_hasten", members=["s1 t01", "s1 t02"], after_ms=9_000) == ["OK"]
    assert rig.client.zscore(rig.keys.index, "s1 t01") == rig.now_ms + 5_000
    assert rig.client.zscore(rig.keys.index, "s1 t02") == rig.now_ms + 9_000
    rig.run("index_hasten", members=["s1 t01"], after_ms=1_000)
    assert rig.client.zscore(rig.keys.index, "s1 t01") == rig.now_ms + 1_000


# index_drop.lua: a turn that is not there is looked at no more.


def test_a_turn_that_is_not_there_is_looked_at_no_more(rig: Rig) -> None:
    rig.run("index_hasten", members=[f"{SID} {TID}", f"{SID} t02"], after_ms=0)
    assert rig.run("index_drop") == ["DROPPED"]
    assert (rig.look_in_ms(), rig.look_in_ms("t02")) == (None, 0)


def test_one_that_came_back_meanwhile_is(rig: Rig) -> None:
    rig.active()
    before = rig.look_in_ms()
    assert rig.run("index_drop") == ["KNOWN"]
    assert rig.look_in_ms() == before == 5_000
