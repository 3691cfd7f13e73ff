"""The scripts by which clients see who else has a session open."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lua.rig import Rig

# presence_join.lua: a process that Redis hears listen is watched.


def test_a_process_that_nobody_hears_listen_is_not_watched(rig: Rig) -> None:
    assert rig.run("presence_join", process="h-1") == ["DEAF"]
    assert not rig.client.exists(rig.keys.presence)


def test_one_that_listens_is_watched(rig: Rig) -> None:
    with listening(rig, "h-1"):
        assert rig.run("presence_join", process="h-1") == ["WATCHED"]
    assert rig.client.hget(rig.keys.presence, "h-1").endswith(" 0")


def test_one_that_is_heard_no_more_is_watched_no_more(rig: Rig) -> None:
    with listening(rig, "h-1"):
        rig.run("presence_join", process="h-1")
    assert rig.run("presence_join", process="h-1") == ["DEAF"]
    assert not rig.client.exists(rig.keys.presence)


# presence_look.lua: who was seen to listen, and does no more, is gone at the second look that misses it.


@contextmanager
def listening(rig: Rig, process: str) -> Generator[None]:
    """Somebody listens to the channel of this process."""
    pubsub: Any = rig.client.pubsub()
    pubsub.subscribe(f"alive:{process}")
    assert pubsub.get_message(timeout=10)["type"] == "subscribe"
    try:
        yield
    finally:
        pubsub.unsubscribe()
        assert pubsub.get_message(timeout=10)["type"] == "unsubscribe"
        pubsub.close()


def look(rig: Rig) -> list[Any]:
    """What a look says, the next time that one is due."""
    rig.pass_ms(900)
    return rig.run("presence_look")


def join(rig: Rig, process: str = "h-1") -> None:
    with listening(rig, process):
        assert rig.run("presence_join", process=process) == ["WATCHED"]


def test_one_that_listened_is_gone_at_the_second_look_that_misses_it(rig: Rig) -> None:
    with listening(rig, "h-1"):
        rig.run("presence_join", process="h-1")
        assert look(rig) == ["LOOKED"]
    assert look(rig) == ["LOOKED"]
    missed_at = rig.now_ms
    assert look(rig) == ["LOOKED", "h-1", missed_at]
    assert look(rig) == ["LOOKED", "h-1", missed_at], "until it is forgotten"
    rig.run("presence_forget", process="h-1", absent_at=missed_at)
    assert look(rig) == ["LOOKED"]


def test_one_that_listens_again_was_never_gone(rig: Rig) -> None:
    join(rig)
    assert look(rig) == ["LOOKED"]
    with listening(rig, "h-1"):
        assert look(rig) == ["LOOKED"]
    assert look(rig) == ["LOOKED"], "it is missed for the first time"


def test_a_redis_that_began_anew_takes_nobody_for_gone(rig: Rig) -> None:
    rig.client.hset(rig.keys.presence, "h-1", "0123abc 0")
    for _ in range(3):
        assert look(rig) == ["LOOKED"]
    with listening(rig, "h-1"):
        assert look(rig) == ["LOOKED"]
    look(rig)
    assert look(rig)[1:2] == ["h-1"], "this one has seen it"


def test_what_a_redis_never_sees_is_forgotten(rig: Rig) -> None:
    rig.client.hset(rig.keys.presence, "h-1", "0123abc 0")
    look(rig)
    rig.pass_ms(600_000)
    rig.run("presence_look")
    assert not rig.client.hexists(rig.keys.presence, "h-1")


def test_one_look_is_made_however_many_ask(rig: Rig) -> None:
    join(rig)
    assert look(rig) == ["LOOKED"]
    assert rig.run("presence_look") == ["EARLY"]
    rig.pass_ms(899)
    assert rig.run("presence_look") == ["EARLY"]
    rig.pass_ms(1)
    assert rig.run("presence_look")[0] == "LOOKED"


def test_a_clock_that_steps_back_keeps_nobody_from_looking(rig: Rig) -> None:
    join(rig)
    look(rig)
    rig.pass_ms(-5_000)
    assert rig.run("presence_look") == ["LOOKED"]
    assert look(rig)[1:2] == ["h-1"]


def test_of_many_only_those_that_are_gone_are_named(rig: Rig) -> None:
    with listening(rig, "h-1"):
        rig.run("presence_join", process="h-1")
        join(rig, "h-2")
        look(rig)
        assert look(rig)[1::2] == ["h-2"]


def test_where_none_is_watched_nothing_is_kept(rig: Rig) -> None:
    assert rig.run("presence_look") == ["LOOKED"]
    assert not rig.client.exists(rig.keys.presence)


@pytest.mark.parametrize("script", ["presence_join", "presence_look"])
def test_the_list_has_a_lifetime(rig: Rig, script: str) -> None:
    join(rig)
    if script == "presence_look":
        rig.client.persist(rig.keys.presence)
        look(rig)
    assert rig.client.pttl(rig.keys.presence) > 0


# presence_forget.lua: a process that was found gone is watched no more.


def test_one_that_is_gone_is_forgotten(rig: Rig) -> None:
    join(rig)
    look(rig)
    _, process, missed_at = look(rig)
    assert rig.run("presence_forget", process=process, absent_at=int(missed_at)) == ["OK"]
    assert not rig.client.hexists(rig.keys.presence, process)


def test_one_that_was_seen_again_is_not_forgotten(rig: Rig) -> None:
    join(rig)
    look(rig)
    _, process, missed_at = look(rig)
    with listening(rig, "h-1"):
        look(rig)
        rig.run("presence_forget", process=process, absent_at=int(missed_at))
    look(rig)
    assert look(rig)[1:2] == ["h-1"]
