"""What Redis has of builds: releases one after another, ramps, builds that are gone, and the turns that need them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.adapters.redis.builds import KNOWN_MS, SERVED_KEPT_MS, RedisBuilds
from brainq.adapters.redis.connection import Client, make_client
from brainq.adapters.redis.keys import Keys
from brainq.contracts.build import BuildTurn, DeclaredBrain, Ramp, WorkerBuild
from brainq.fleet import builds as fleet_builds


@pytest.fixture
def client(redis_url: str) -> Iterator[Client]:
    client = make_client(redis_url)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
def builds(client: Client) -> RedisBuilds:
    return RedisBuilds(client, Keys("bq:"))


def age(builds: RedisBuilds, client: Client, by_ms: int) -> None:
    """Make all builds that were seen older, since Redis' clock cannot be set."""
    for name in cast("list[str]", client.zrange(builds.keys.builds_seen, 0, -1)):
        client.zincrby(builds.keys.builds_seen, -by_ms, name)


def build(name: str, *digests: str, is_distinct: bool = True) -> WorkerBuild:
    brains = tuple(DeclaredBrain(f"brain{number}", digest) for number, digest in enumerate(digests))
    return WorkerBuild(name, brains, is_distinct)


def test_what_was_released_before_goes_on_with_what_its_build_is_released_to(builds: RedisBuilds) -> None:
    builds.release({"one": "two", "other": "else"})
    builds.release({"two": "three"})
    assert builds.released() == {"one": "three", "two": "three", "other": "else"}


def test_what_is_released_back_stays_there(builds: RedisBuilds) -> None:
    builds.release({"one": "two"})
    builds.release({"two": "three"})
    builds.release({"three": "one"})
    assert builds.released() == {"two": "one", "three": "one"}


@pytest.mark.parametrize("again", [1, 2])
def test_a_release_that_is_said_again_changes_nothing(builds: RedisBuilds, client: Client, again: int) -> None:
    for _ in range(again):
        builds.release({"one": "two"})
    assert builds.released() == {"one": "two"}
    assert KNOWN_MS - 5_000 <= client.pttl("bq:released") <= KNOWN_MS


def test_a_worker_learns_of_a_ramp_and_that_it_is_over(builds: RedisBuilds) -> None:
    mine, ramp = build("2.0", "d"), Ramp("2.0", "1.0", 2_500)
    builds.announce("coordinator@1", mine, "coordinator", ["turns"], 10.0)
    assert (mine.ramp, builds.ramp()) == (None, None)
    builds.set_ramp(ramp)
    builds.announce("coordinator@1", mine, "coordinator", ["turns"], 10.0)
    known, said = mine.ramp, mine.declared
    assert known == builds.ramp() == ramp
    builds.announce("coordinator@1", mine, "coordinator", ["turns"], 10.0)
    assert mine.ramp is known, "what it declares is made anew only where the ramp has changed"
    builds.set_ramp(None)
    builds.announce("coordinator@1", mine, "coordinator", ["turns"], 10.0)
    assert mine.ramp is None
    assert mine.declared != said


def test_a_ramp_lasts_as_long_as_there_are_workers_that_keep_to_it(builds: RedisBuilds, client: Client) -> None:
    builds.set_ramp(Ramp("2.0", "1.0", 1))
    client.pexpire("bq:ramp", 60_000)
    builds.announce("coordinator@1", build("2.0", "d"), "coordinator", ["turns"], 10.0)
    assert client.pttl("bq:ramp") > KNOWN_MS - 60_000


def test_a_worker_says_whom_it_serves_by_its_brains_and_by_its_build(builds: RedisBuilds, client: Client) -> None:
    builds.announce("coordinator@1", build("2.0", "d1", "d2"), "coordinator", ["turns", "finalize"], 10.0)
    served = sorted(key for key in client.keys("*") if "serves" in str(key))
    assert len(served) == 6
    assert {client.get(key) for key in served} == {"2.0"}
    assert builds.known() == {"2.0": {"brain0": "d1", "brain1": "d2"}}
    assert builds.unserved_s(["d1", "none"]) == {"d1": pytest.approx(0.0, abs=5.0), "none": None}
    key = builds.keys.serves("turns", "d1")
    client.pexpire(key, SERVED_KEPT_MS - 90_000)
    assert builds.unserved_s(["d1"])["d1"] == pytest.approx(90.0, abs=5.0)
    assert builds.unserved_s([]) == {}


def test_where_builds_are_not_told_apart_a_worker_says_its_own_alone(builds: RedisBuilds, client: Client) -> None:
    builds.announce("coordinator@1", build("", "d", is_distinct=False), "coordinator", ["turns"], 10.0)
    assert client.keys("*") == [builds.keys.build("coordinator@1")]
    assert 9_000 <= client.pttl(builds.keys.build("coordinator@1")) <= 10_000
    assert builds.workers() == (), "nobody is registered"
    client.sadd(builds.keys.workers, "coordinator@1", "gone@1")
    assert [worker.name for worker in builds.workers()] == ["coordinator@1"]
    builds.withdraw("coordinator@1")
    assert builds.workers() == ()


def test_a_build_that_no_worker_has_reported_for_months_is_forgotten_and_no_other(
    builds: RedisBuilds, client: Client
) -> None:
    builds.announce("coordinator@1", build("1.0", "d1"), "coordinator", ["turns"], 10.0)
    age(builds, client, 120_000)
    builds.announce("coordinator@2", build("2.0", "d2"), "coordinator", ["turns"], 10.0)
    client.hset(builds.keys.builds, "0.9 brain0", "d0")  # of a release that did not say when it reported
    assert builds.forget_old() == 0
    age(builds, client, KNOWN_MS - 60_000)
    assert builds.forget_old() == 1
    assert sorted(builds.known()) == ["0.9", "2.0"]
    age(builds, client, 120_000)
    assert builds.forget_old() == 2, "it counts from when it was first seen"
    assert builds.known() == {}
    assert builds.forget_old() == 0


@pytest.mark.parametrize(("count", "is_whole"), [(2, True), (3, False)])
def test_where_there_are_more_turns_than_are_looked_at_that_is_said(
    monkeypatch: pytest.MonkeyPatch, count: int, *, is_whole: bool
) -> None:
    """As many as are looked at may be all, or not: nobody knows."""
    monkeypatch.setattr(fleet_builds, "MAX_TURNS", 3)
    turns = [BuildTurn("s", f"t{number}", "active", "b", "1.0", "d", False, 1) for number in range(count)]
    state = SimpleNamespace(
        unended=lambda limit: turns[:limit],  # pyright: ignore[reportUnknownLambdaType]
        workers=lambda: (),
        known=dict,
        released=dict,
        ramp=lambda: None,
    )
    wiring: Any = SimpleNamespace(state=SimpleNamespace(builds=state))
    read: Any = vars(fleet_builds)["_read_cell"]
    assert read(wiring).is_whole is is_whole
