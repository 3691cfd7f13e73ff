"""Random schedules of everything that can happen to a few turns. See tests/support/model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from random import SystemRandom
from typing import Any

import pytest

from brainq.adapters.redis.slot_primary import slot_of
from tests.support.cluster import RedisCluster
from tests.support.model.bench import CLUSTER, Bench
from tests.support.model.killers import find_killers, known_killers, quiet_bench
from tests.support.model.mutants import MUTANTS
from tests.support.model.rules import BrokenRule
from tests.support.model.schedule import Schedule
from tests.support.server import RedisServer

SCHEDULES = int(os.environ.get("BRAINQ_MODEL_SCHEDULES", "2000"))  # the same each time
FRESH = int(os.environ.get("BRAINQ_MODEL_FRESH", "18000"))  # of seeds that were never tried
ONE_SEED = os.environ.get("BRAINQ_MODEL_SEED")
SAMPLE = 60  # of these at a time; the short run has the first
FRESH_CHUNK = 1000
ONCE_FAILED: tuple[int, ...] = ()  # seeds that found a bug in brainq; they are tried first


def chunks() -> list[Any]:
    if ONE_SEED is not None:
        return [(int(ONE_SEED),)]
    fixed = [range(first, min(first + SAMPLE, SCHEDULES)) for first in range(0, SCHEDULES, SAMPLE)]
    marked = [pytest.param(seeds, marks=pytest.mark.full if seeds[0] else ()) for seeds in fixed]
    return [ONCE_FAILED, *marked] if ONCE_FAILED else [*marked]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    server = RedisServer(unix=True).start()
    yield server
    server.stop()


@pytest.fixture
def bench(server: RedisServer) -> Iterator[Bench]:
    with quiet_bench(server.socket_path) as bench:
        yield bench


@pytest.fixture
def slot_bench() -> Iterator[Bench]:
    """On the primary of a cluster that has the slot of the keys, which refuses scripts with keys of another slot."""
    with RedisCluster(replicas=False, options=("--unixsocket", "s")) as cluster:
        path = cluster.directory / str(cluster.primary_port(slot_of("bq"))) / "s"
        with quiet_bench(str(path), CLUSTER) as bench:
            yield bench


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", chunks(), ids=str)
def test_no_schedule_breaks_a_rule(bench: Bench, seeds: Sequence[int]) -> None:
    for seed in seeds:
        happened = bench.run(seed)
        if ONE_SEED is not None:
            print("\n".join(happened))


def test_no_schedule_breaks_a_rule_on_a_cluster(slot_bench: Bench) -> None:
    for seed in range(SAMPLE):
        slot_bench.run(seed)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, FRESH, FRESH_CHUNK))
def test_no_fresh_schedule_breaks_a_rule(bench: Bench, first: int) -> None:
    """A failure names its seed, and the command that runs it again."""
    draw = SystemRandom()
    for _ in range(first, min(first + FRESH_CHUNK, FRESH)):
        bench.run(draw.randrange(SCHEDULES, 2**53))


@pytest.mark.parametrize("failure", [ValueError, BrokenRule, pytest.fail.Exception, KeyboardInterrupt])
def test_what_fails_a_schedule_is_told_with_its_seed(
    bench: Bench, failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Schedule) -> None:
        raise failure("oh")

    monkeypatch.setattr(Schedule, "run", fails)
    with pytest.raises(BaseException, match="oh") as caught:
        bench.run(4711)
    told = [str(caught.value), *getattr(caught.value, "__notes__", [])]
    assert "BRAINQ_MODEL_SEED=4711" in "\n".join(told)


def test_a_seed_is_the_same_schedule_each_time(bench: Bench) -> None:
    assert bench.run(7) == bench.run(7)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_script_is_found(bench: Bench, mutant: str) -> None:
    bench.scripts.replace(*MUTANTS[mutant])
    seeds = known_killers().get(mutant, [])
    found = any(bench.breaks(seed) for seed in seeds)
    assert found, f"seeds {seeds} no longer find it; look for others: python -m tests.support.model.killers"


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_script_is_found_without_knowing_where(bench: Bench, mutant: str) -> None:
    bench.scripts.replace(*MUTANTS[mutant])
    assert find_killers(bench, mutant, 1)
