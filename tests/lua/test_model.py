"""Random schedules of everything that can happen to a few turns. See tests/support/model."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from tests.support.model.bench import Bench
from tests.support.model.mutants import MUTANTS
from tests.support.server import RedisServer

SCHEDULES = int(os.environ.get("BRAINQ_MODEL_SCHEDULES", "20000"))
CHUNKS = 16  # so that pytest-xdist can share them out
ONE_SEED = os.environ.get("BRAINQ_MODEL_SEED")
MOST_FOR_A_MUTANT = 1500


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    server = RedisServer(unix=True).start()
    yield server
    server.stop()


@pytest.fixture
def bench(server: RedisServer) -> Iterator[Bench]:
    # The machines log each failed step and rescued call: a schedule is full of them.
    logging.disable(logging.CRITICAL)
    bench = Bench(server.url.removeprefix("unix://").partition("?")[0])
    yield bench
    bench.close()
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(600)
@pytest.mark.skipif(ONE_SEED is not None, reason="BRAINQ_MODEL_SEED asks for one schedule")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_schedule_breaks_a_rule(bench: Bench, chunk: int) -> None:
    size = -(-SCHEDULES // CHUNKS)
    for seed in range(chunk * size, (chunk + 1) * size):
        bench.run(seed)


@pytest.mark.skipif(ONE_SEED is None, reason="BRAINQ_MODEL_SEED names no schedule")
def test_one_schedule(bench: Bench) -> None:
    print("\n".join(bench.run(int(ONE_SEED or 0))))


def test_a_seed_is_the_same_schedule_each_time(bench: Bench) -> None:
    assert bench.run(7) == bench.run(7)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_script_is_found(bench: Bench, mutant: str) -> None:
    bench.scripts.replace(*MUTANTS[mutant])
    found = any(breaks_a_rule(bench, seed) for seed in range(MOST_FOR_A_MUTANT))
    assert found, f"{MOST_FOR_A_MUTANT} schedules did not find {mutant!r}"


def breaks_a_rule(bench: Bench, seed: int) -> bool:
    try:
        bench.run(seed)
    except AssertionError:
        return True
    return False
