"""How many workers a pool wants: the decision, case by case."""

from __future__ import annotations

import pytest

from brainq.contracts.build import BuildTurn, Ramp
from brainq.contracts.fleet import FleetQueue, FleetWorker, PoolScale
from brainq.engine.upkeep.sweeper import turn_capacity
from brainq.errors import InvalidInput
from brainq.fleet.scale import BuildFacts, WorkerBounds, build_scale, build_shares, pool_scale, worker_bounds
from brainq.runtime.settings.deployment import Settings


def worker(name: str, busy: int, threads: int = 8) -> FleetWorker:
    return FleetWorker(name=name, pool="serial", threads=threads, busy=busy)


def queue(depth: int, age: int | None = None) -> FleetQueue:
    return FleetQueue(name="brainq.tools.network", pool="serial", depth=depth, oldest_age_s=age)


def scaled(
    depths: tuple[int, ...] = (),
    busy: tuple[int, ...] = (),
    draining: tuple[int, ...] = (),
    turns: int = 0,
    bounds: tuple[int, int] = (0, 100),
    threads: int = 8,
) -> PoolScale:
    return pool_scale(
        "serial",
        [queue(depth) for depth in depths],
        [worker(f"w{number}", each) for number, each in enumerate(busy)],
        [worker(f"d{number}", each) for number, each in enumerate(draining)],
        threads,
        turns,
        WorkerBounds(*bounds),
    )


@pytest.mark.parametrize(
    ("depths", "busy", "wanted"),
    [
        ((), (), 0),
        ((0, 0), (0,), 0),
        ((1,), (), 1),
        ((8,), (), 1),
        ((9,), (), 2),
        ((4, 4, 1), (0, 0), 2),
        ((), (8, 1), 2),
        ((7,), (1,), 1),
        ((8,), (1,), 2),
        ((), (1, 1, 1), 1),
        ((800,), (), 100),
        ((8_000,), (), 100),
    ],
)
def test_what_is_queued_and_runs_over_the_threads_rounded_up(
    depths: tuple[int, ...], busy: tuple[int, ...], wanted: int
) -> None:
    found = scaled(depths, busy)
    assert (found.wanted, found.queued, found.running) == (wanted, sum(depths), sum(busy))
    assert found.load == found.queued + found.running


@pytest.mark.parametrize(
    ("bounds", "queued", "wanted"),
    [((1, 3), 0, 1), ((1, 3), 17, 3), ((1, 3), 80, 3), ((0, 3), 0, 0), ((2, 2), 1, 2), ((3, 1), 0, 3)],
)
def test_bounds_hold(bounds: tuple[int, int], queued: int, wanted: int) -> None:
    assert scaled((queued,), bounds=bounds).wanted == wanted


def test_what_a_draining_worker_runs_wants_no_other() -> None:
    found = scaled((), (2,), draining=(8, 8))
    assert (found.wanted, found.workers, found.draining, found.running) == (1, 1, 2, 2)


def test_a_workers_threads_are_the_mean_of_those_alive_and_else_the_setting() -> None:
    mixed = [worker("a", 0, 4), worker("b", 0, 11)]
    assert pool_scale("serial", [queue(14)], mixed, [], 100, 0, WorkerBounds(0, 9)).threads == 7
    assert pool_scale("serial", [queue(14)], mixed, [], 100, 0, WorkerBounds(0, 9)).wanted == 2
    assert scaled((14,), threads=100).threads == 100


@pytest.mark.parametrize(("turns", "wanted"), [(0, 1), (10, 1), (11, 2), (100, 10)])
def test_coordinators_follow_the_turns_that_their_threads_make_capacity_for(turns: int, wanted: int) -> None:
    found = scaled((1,), (1,), turns=turns)
    assert found.wanted == wanted
    if turns:
        assert turn_capacity(found.wanted * found.threads, None, None).all >= turns, "they have capacity then"
        assert turn_capacity((found.wanted - 1) * found.threads or 1, None, None).all < turns or found.wanted == 1


def test_the_order_in_which_workers_may_stop() -> None:
    found = scaled((), (3, 0, 1), draining=(5, 2))
    assert [(each.name, each.draining) for each in found.stop_first] == [
        ("d1", True),
        ("d0", True),
        ("w1", False),
        ("w2", False),
        ("w0", False),
    ]


def test_the_oldest_of_all_its_queues() -> None:
    queues = [queue(1, 3), queue(2, 70), queue(0)]
    assert pool_scale("serial", queues, [], [], 1, 0, WorkerBounds(0, 9)).oldest_age_s == 70
    assert scaled((1,)).oldest_age_s is None


@pytest.mark.parametrize(
    ("least", "most", "bounds"),
    [
        (None, None, (2, 5)),
        (0, None, (0, 5)),
        (None, 9, (2, 9)),
        (3, 4, (3, 4)),
        (None, 1, (1, 1)),
        (7, None, (7, 7)),
    ],
)
def test_bounds_that_are_asked_for_go_before_the_settings(
    least: int | None, most: int | None, bounds: tuple[int, int]
) -> None:
    settings = Settings(scale_min=2, scale_max=5)
    assert worker_bounds(settings, least, most) == WorkerBounds(*bounds)


@pytest.mark.parametrize(
    ("least", "most", "field"), [(-1, None, "min"), (1_001, None, "min"), (None, 0, "max"), (3, 2, "min")]
)
def test_bounds_that_cannot_be(least: int | None, most: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        worker_bounds(Settings(), least, most)
    assert refused.value.field == field


def of(build: str, threads: int = 8, busy: int = 0) -> FleetWorker:
    return FleetWorker(name=f"serial@{build}", pool="serial", threads=threads, busy=busy, build=build)


def turns_of(*builds: str, state: str = "active") -> list[BuildTurn]:
    return [BuildTurn("s", f"t{n}", state, "", build, "", False, 1) for n, build in enumerate(builds)]


RAMP = Ramp("1.5", "1.4", 1_000)


@pytest.mark.parametrize(
    ("turns", "ramp", "shares"),
    [
        ([], None, (0.75, 0.25)),
        ([], RAMP, (0.9, 0.1)),
        (turns_of("1.4", "1.5", "1.5", "1.5"), RAMP, (0.25, 0.75)),
        (turns_of("1.4", *[""] * 10), RAMP, (10 / 11, 1 / 11)),
        ([*turns_of("1.5"), *turns_of("1.4", "1.4", state="parked")], None, (0.0, 1.0)),
    ],
    ids=["by threads", "by the ramp", "by their turns", "and those that none has begun", "parked ones need no worker"],
)
def test_which_part_of_what_all_read_is_a_builds(
    turns: list[BuildTurn], ramp: Ramp | None, shares: tuple[float, float]
) -> None:
    found = build_shares(["1.4", "1.5"], turns, ramp, [of("1.4", 24), of("1.5", 8)])
    assert tuple(found.values()) == pytest.approx(shares)
    assert build_shares(["1.5"], [], None, []) == {"1.5": 1.0}


def test_a_build_wants_workers_for_its_own_queues_and_its_part_of_the_others() -> None:
    queues = [queue(40), queue(8).model_copy(update={"build": "1.5"}), queue(80).model_copy(update={"build": "1.4"})]
    workers = [of("1.4", busy=8), of("1.5", busy=4)]
    found = build_scale(BuildFacts("1.5", 0.25, 0), "serial", queues, workers, 8, 0, WorkerBounds(0, 100))
    assert (found.build, found.queued, found.running, found.wanted, found.workers) == ("1.5", 18, 4, 3, 1)


def test_a_build_that_turns_are_pinned_to_keeps_a_worker_of_each_pool() -> None:
    bounds = WorkerBounds(0, 100)
    assert build_scale(BuildFacts("1.4", 0.0, 3), "serial", [], [], 8, 0, bounds).wanted == 1
    assert build_scale(BuildFacts("1.4", 0.0, 0), "serial", [], [], 8, 0, bounds).wanted == 0
