"""What is wrong with a fleet that looks healthy."""

from __future__ import annotations

import pytest

from brainq import Brain, Effect, Limits
from brainq.contracts.fleet import FleetQueue, FleetSweeper, FleetWorker
from brainq.fleet.troubles import TROUBLE_KINDS, fleet_troubles, longest_limits

QUIET = FleetSweeper(last_round_s=0.5, overdue_s=0.1)


def queue(age_s: int | None, *, pool: str = "serial", build: str = "") -> FleetQueue:
    return FleetQueue(name="brainq.tools.network", pool=pool, depth=3, oldest_age_s=age_s, build=build)


def worker(busy: int, threads: int = 1, *, pool: str = "serial", build: str = "") -> FleetWorker:
    return FleetWorker(name=f"{pool}@host", pool=pool, threads=threads, busy=busy, build=build)


@pytest.mark.parametrize(
    ("age_s", "workers", "kind"),
    [
        (10, [worker(0)], None),
        (11, [worker(0)], "idle_queue"),
        (11, [worker(1)], None),
        (11, [worker(1), worker(0)], "idle_queue"),
        (11, [worker(50, 100)], None),
        (11, [worker(49, 100)], "idle_queue"),
        (11, [], "unserved_queue"),
        (11, [worker(0, pool="parallel")], "unserved_queue"),
        (60, [worker(1)], None),
        (61, [worker(1)], "full_pool"),
        (61, [worker(99, 100)], None),
        (None, [], None),
    ],
)
def test_an_old_doorbell_is_told_by_what_the_workers_of_its_pool_do(
    age_s: int | None, workers: list[FleetWorker], kind: str | None
) -> None:
    found = fleet_troubles([queue(age_s)], workers, QUIET, longest_s={"serial": 60.0})
    assert [trouble.kind for trouble in found] == ([] if kind is None else [kind])
    assert all("brainq.tools.network" in trouble.text and trouble.remedy for trouble in found)


def test_a_worker_that_says_what_it_lacks_is_named_and_is_not_idle() -> None:
    unfit = worker(0).model_copy(update={"lacks": "no file descriptors are left"})
    found = fleet_troubles([queue(30)], [unfit], QUIET)
    assert [trouble.text for trouble in found] == ["serial@host cannot work: no file descriptors are left"]
    assert [trouble.kind for trouble in fleet_troubles([queue(30)], [unfit, worker(0)], QUIET)] == [
        "unfit_worker",
        "idle_queue",
    ]


def test_a_queue_of_one_build_is_for_the_workers_of_that_build() -> None:
    others = [worker(0, build="1.4")]
    (found,) = fleet_troubles([queue(30, build="1.5")], others, QUIET)
    assert found.kind == "unserved_queue"
    (found,) = fleet_troubles([queue(30, build="1.4")], others, QUIET)
    assert found.kind == "idle_queue"


def test_a_late_sweep_and_a_process_that_does_not_say_that_it_works() -> None:
    late = FleetSweeper(last_round_s=40.0, overdue_s=16.0)
    found = fleet_troubles([], [], late, ["1-abc"])
    assert [(trouble.kind, trouble.subject) for trouble in found] == [
        ("late_sweep", "sweeper"),
        ("unannounced", "1-abc"),
    ]
    assert {trouble.kind for trouble in found} <= set(TROUBLE_KINDS)
    assert fleet_troubles([], [], FleetSweeper(overdue_s=15.0)) == ()


def test_the_longest_task_of_a_pool_is_by_its_brains_limits() -> None:
    shop = Brain("shop", "offline:rules", limits=Limits(timeout_s=300))
    desk = Brain("desk", "offline:rules", limits=Limits(timeout_s=120))

    @shop.tool(effect=Effect.READ_ONLY, timeout_s=20)
    def look() -> str:
        "Look."
        return ""

    @desk.tool(effect=Effect.NETWORK, timeout_s=90)
    def pay() -> str:
        "Pay."
        return ""

    assert longest_limits([shop, desk]) == {"coordinator": 300, "parallel": 20, "serial": 90}
