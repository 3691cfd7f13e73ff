"""Caps that are lifted, set again, told by some sweepers only, or forgotten: they leave nothing, and every script ends.

On a server of its own, which is killed where one does not: nothing else stops it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from threading import Timer

import pytest

from tests.lua.rig import Rig
from tests.lua.test_brain_cap import A4, LAB, ONE, aside, end, left, live
from tests.lua.test_capacity_keep import A1, A2, A3, B1, keep, state, submit
from tests.support.server import RedisServer

TWO = '{"lab":2}'
MOST_S = 120  # of a test that takes a part of a second, or hangs
LATER = [(f"a:{n}", f"t{n}") for n in range(20, 24)]


@pytest.fixture(scope="module")
def own_rig() -> Iterator[Rig]:
    server = RedisServer().start()
    rig = Rig(server.url)
    yield rig
    rig.close()
    server.stop()


@pytest.fixture
def rig(own_rig: Rig) -> Iterator[Rig]:
    own_rig.client.flushdb()
    own_rig.begin()
    killer = Timer(MOST_S, os.kill, (own_rig.client.info("server")["process_id"], signal.SIGKILL))
    killer.start()
    yield own_rig
    killer.cancel()


def test_a_cap_that_is_lifted_and_set_again_counts_nobody_who_has_left_the_line(rig: Rig) -> None:
    keep(rig, 1, caps=TWO)
    for turn in (B1, A1, A2):
        submit(rig, turn, **({} if turn == B1 else LAB))
    keep(rig, 1)
    for turn in (B1, A1, A2):
        end(rig, turn)
    assert left(rig) == []
    keep(rig, 9, caps=TWO)
    for turn in LATER:
        submit(rig, turn, **LAB)
    assert [state(rig, turn) for turn in LATER] == ["active", "active", "queued", "queued"]
    for turn in LATER:
        end(rig, turn)
    assert left(rig) == []


def test_who_is_counted_as_next_and_stands_nowhere_stops_nobody(rig: Rig) -> None:
    keep(rig, 9, caps=TWO)
    for turn in LATER:
        submit(rig, turn, **LAB)
    rig.client.sadd(f"{rig.keys.room_brains[:-3]}next:lab a:", "a:97", "a:98", "a:99")
    end(rig, LATER[0])
    assert [state(rig, turn) for turn in LATER[2:]] == ["active", "queued"]
    for turn in LATER[1:]:
        end(rig, turn)
    assert left(rig) == []


def test_a_sweeper_forgets_who_waits_for_a_brain_and_stands_nowhere(rig: Rig) -> None:
    keep(rig, 9, caps=TWO)
    rig.client.hset(rig.keys.room_brains, "a:99", "lab")
    rig.client.sadd(f"{rig.keys.room_brains[:-3]}next:lab a:", "a:99")
    keep(rig, 9, caps=TWO)
    assert left(rig) == []


def test_a_tenant_without_a_line_that_is_to_come_is_passed(rig: Rig) -> None:
    keep(rig, 9, caps=ONE)
    rig.client.zadd(rig.keys.room_for("lab"), {"a:": 1, "b:": 2})
    rig.client.zadd(rig.keys.room_tenants, {"c:": 1})
    keep(rig, 9, caps=ONE)
    assert left(rig) == []


def test_two_sweepers_that_tell_other_caps_in_turn_leave_the_one_that_is_told(rig: Rig) -> None:
    for turn in (A1, A2, A3, A4):
        keep(rig, 9, caps=TWO, cap_ms=60_000)
        submit(rig, turn, **LAB)
        rig.pass_ms(30_000)
        keep(rig, 9, caps='{"ward":1}', cap_ms=60_000)
    assert [state(rig, turn) for turn in (A1, A2, A3, A4)] == ["active", "active", "queued", "queued"]
    rig.pass_ms(29_999)
    assert keep(rig, 9, caps='{"ward":1}', cap_ms=60_000)[2] == ""
    rig.pass_ms(1)
    assert keep(rig, 9, caps='{"ward":1}', cap_ms=60_000)[2] == "a:3 a:4"
    rig.pass_ms(60_000)
    keep(rig, 9)
    for turn in (A1, A2, A3, A4):
        end(rig, turn)
    keep(rig, 9)
    assert rig.client.hkeys(rig.keys.room) == ["all", "tenant"]
    assert left(rig) == []


@pytest.mark.parametrize("told", ["{}", ONE, TWO])
def test_when_what_was_said_of_the_room_has_ended_nobody_is_passed_or_forgotten(rig: Rig, told: str) -> None:
    keep(rig, 3, caps=ONE)
    for turn in (A1, A2, A3):
        submit(rig, turn, **LAB)
    rig.client.delete(rig.keys.room)
    assert submit(rig, ("a:2", "t08"), brain="desk")[0] == "QUEUED", "another of its session was before it"
    assert rig.client.zscore(rig.keys.room_live, " lab a:1 t01") is not None
    assert keep(rig, 3, caps=told)[1] == (3 if told == "{}" else 2), "a:2 began, for there was no cap"
    for turn in (A1, A2, A3, ("a:2", "t08")):
        end(rig, turn)
    keep(rig, 9)
    assert (left(rig), live(rig)) == ([], [])


def test_a_cap_that_ends_while_somebody_stands_aside_and_nobody_names_it_keeps_nobody(rig: Rig) -> None:
    keep(rig, 9, caps=ONE)
    for turn in (A1, A2):
        submit(rig, turn, **LAB)
    rig.client.delete(rig.keys.room)
    assert aside(rig) == ["a:2"]
    assert keep(rig, 9)[2] == "a:2"


def test_a_script_lets_in_a_thousand_at_once_and_leaves_the_others_to_the_next_one(rig: Rig) -> None:
    """Of sessions that have no turn any more: nobody begins."""
    keep(rig, 9)
    rig.client.zadd(rig.keys.room_line("a:"), {f"a:{n}": n for n in range(1500)})
    rig.client.zadd(rig.keys.room_tenants, {"a:": 1})
    rig.once("capacity_keep", size=9, share=9, own="{}", caps="{}", cap_ms=0, most=9, keep_ms=600_000)
    assert rig.client.zcard(rig.keys.room_line("a:")) == 500
    rig.once("capacity_keep", size=9, share=9, own="{}", caps="{}", cap_ms=0, most=9, keep_ms=600_000)
    assert left(rig) == []
