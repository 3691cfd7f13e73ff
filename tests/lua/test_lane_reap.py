"""lane_reap.lua: freeing lanes that a sweeper found lapsed."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def lapsed(rig: Rig) -> str:
    """Two in line, the first without a beat for too long; the mark its sweeper got."""
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[rig.keys.lane("A")])
    rig.pass_ms(LEASE_MS)
    word, mark, holder = rig.run("lane_lapsed")
    assert (word, holder) == ("LAPSED", "1")
    return mark


def test_what_stays_silent_is_freed(rig: Rig) -> None:
    mark = lapsed(rig)
    assert rig.run("lane_reap", holder="1", mark=mark) == ["FREED", "2"]
    assert rig.client.lrange(rig.keys.lane("A"), 0, -1) == ["2"]


def test_what_beats_again_is_kept(rig: Rig) -> None:
    """Its call started, or ended with its function still running, after the sweeper had looked."""
    mark = lapsed(rig)
    assert rig.run("lane_beat", holder="1") == ["OK"]
    assert rig.run("lane_reap", holder="1", mark=mark) == ["KEPT"]
    assert rig.client.lrange(rig.keys.lane("A"), 0, -1) == ["1", "2"]


def test_a_mark_of_an_earlier_look_frees_nothing(rig: Rig) -> None:
    mark = lapsed(rig)
    rig.pass_ms(LEASE_MS + 1)
    rig.run("lane_lapsed")
    assert rig.run("lane_reap", holder="1", mark=mark) == ["KEPT"]


def test_a_stranger_frees_nothing(rig: Rig) -> None:
    assert rig.run("lane_reap", holder="nobody", mark="1.5") == ["KEPT"]


def test_what_is_taken_again_in_the_very_moment_is_kept(rig: Rig) -> None:
    """A hold was released just after its call was found parked: the call has its lanes and is on its way."""
    for holder in "12":
        rig.run("lane_take", holder=holder, lanes=[rig.keys.lane("A")])
    rig.pass_ms(LEASE_MS)
    mark = rig.run("lane_lapsed", hold_ms=LEASE_MS)[1]  # as sweepers do
    assert rig.run("lane_take", holder="1", lanes=[rig.keys.lane("A")]) == ["GRANTED"]
    assert rig.run("lane_reap", holder="1", mark=mark) == ["KEPT"]
