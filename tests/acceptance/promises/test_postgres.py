"""The promises that rest on SQL, on Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.promises import test_p02_killed_workers as killed
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.postgres import postgres_url
from tests.support.world import World

Fault = Callable[[World, str], None]
QUICK: tuple[Fault, ...] = (
    killed.test_a_coordinator_dies_during_a_model_call,
    killed.test_p3_a_write_whose_worker_dies_is_unknown_and_never_runs_again,
    killed.test_p3_an_outcome_that_sql_has_survives_its_worker,
)
FULL: tuple[Fault, ...] = (
    killed.test_a_parallel_worker_dies_during_a_read,
    killed.test_p3_an_idempotent_write_runs_again_with_its_key,
    killed.test_the_deadline_passes_while_the_tool_pools_are_dead,
    killed.test_all_pools_die_and_come_back,
)


@pytest.fixture(scope="module")
def postgres_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with postgres_url() as url:
        pools = ("coordinator", "parallel", "serial", "finalizer")
        made = World(tmp_path_factory.mktemp("postgres"), sql_url=url, workers=dict.fromkeys(pools, 2))
        try:
            yield made.start()
        finally:
            made.stop()


@pytest.fixture
def world(postgres_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(postgres_world.directory))
    yield postgres_world
    postgres_world.launch_dead()


def test_turns_run_and_are_recorded_once(world: World, sid: str) -> None:
    handles = [
        world.client.submit(f"{sid}-{n % 4}", script([("write", {"name": str(n)})], final=str(n))) for n in range(12)
    ]
    assert [handle.result(timeout_s=60).text for handle in handles] == [str(n) for n in range(12)]
    for handle in handles:
        world.done(handle)
        world.all_events(handle)
        assert world.row_counts(handle) == {"messages": 2, "decisions": 1, "calls": 1}


@pytest.mark.parametrize(
    "fault",
    [*QUICK, *(pytest.param(fault, marks=pytest.mark.full) for fault in FULL)],
    ids=lambda fault: fault.__name__.removeprefix("test_"),
)
def test_a_death_is_healed_as_on_sqlite(world: World, sid: str, fault: Fault) -> None:
    fault(world, sid)
