"""The fleet's state: activity, troubles, and several cells in one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brainq import Brain, Effect, Limits
from brainq.contracts.budgets import BudgetState
from brainq.contracts.fleet import (
    Fleet,
    FleetBrain,
    FleetCapacity,
    FleetLanes,
    FleetModel,
    FleetQueue,
    FleetRedis,
    FleetScale,
    FleetSweeper,
    FleetTrouble,
    FleetTurns,
    FleetWorker,
    GivenUp,
    Pool,
    PoolScale,
    StopCandidate,
)
from brainq.contracts.rows import RecentTurn
from brainq.contracts.spending import SPEND_FIGURES, SpendLine
from brainq.contracts.stop import Stop
from brainq.fleet.combine import RULES, combine, combine_same
from brainq.fleet.snapshot import MAX_RECENT_TURNS, MINUTES, fleet_activity
from brainq.fleet.troubles import TROUBLE_KINDS, fleet_troubles, longest_limits

# What several cells say of themselves, as one: sums, and the worst of what may be wrong.


NOW = datetime(2026, 11, 27, tzinfo=UTC)
TROUBLE = FleetTrouble(kind="late_sweep", subject="sweeper", text="it is late", remedy="wait")


def fleet(cell: int, *, age: int | None, size: int | None, swept: float | None) -> Fleet:
    worker = FleetWorker(name=f"serial@{cell}", pool="serial", threads=1, busy=cell)
    return Fleet(
        at_ms=1_000 * cell,
        pools=(Pool(name="serial", queues=("q",), workers=(worker,)),),
        queues=(FleetQueue(name="q", pool="serial", depth=cell, oldest_age_s=age),),
        lanes=FleetLanes(held=cell, waiting=1, lapsed=2),
        turns=FleetTurns(accepted=1, active=cell, is_whole=cell != 2, approvals=3),
        room=FleetCapacity(size=size, share=5, live=cell, brains=(FleetBrain(name="shop", cap=4, live=cell),)),
        sweeper=FleetSweeper(last_round_s=swept, overdue_s=float(cell)),
        given_up=GivenUp(deliveries=cell, unprefixed=1),
        models=(FleetModel(name="m", requests=10, taken=cell, stopped_s=float(cell)),),
        stops=(Stop(kind="tool", name="write", mode="pause"),),
        troubles=(TROUBLE,),
        redis=FleetRedis(
            version=f"7.{cell}",
            used_bytes=100,
            max_bytes=None if cell == 2 else 200,
            policy="allkeys-lru" if cell == 2 else "noeviction",
            keeps_on_disk=cell != 2,
        ),
    )


def test_two_fleets_are_one_with_sums_and_the_worst_of_both() -> None:
    one, other = fleet(1, age=None, size=10, swept=1.0), fleet(2, age=7, size=20, swept=3.0)
    both = combine([one, other])
    assert both.at_ms == 2_000
    assert [(pool.queues, [worker.name for worker in pool.workers]) for pool in both.pools] == [
        (("q",), ["serial@1", "serial@2"])
    ]
    assert both.queues == (FleetQueue(name="q", pool="serial", depth=3, oldest_age_s=7),)
    assert both.lanes == FleetLanes(held=3, waiting=2, lapsed=4)
    assert both.turns == FleetTurns(accepted=2, active=3, is_whole=False, approvals=6)
    brain = FleetBrain(name="shop", cap=8, live=3)
    assert both.room == FleetCapacity(size=30, share=10, live=3, brains=(brain,))
    assert both.sweeper == FleetSweeper(last_round_s=3.0, overdue_s=2.0)
    assert both.given_up == GivenUp(deliveries=3, unprefixed=2)
    assert both.models == (FleetModel(name="m", requests=20, taken=3, stopped_s=2.0),)
    assert (len(both.stops), both.troubles) == (1, (TROUBLE, TROUBLE))
    assert both.redis == FleetRedis(
        version="7.1", used_bytes=200, max_bytes=None, policy="allkeys-lru", keeps_on_disk=False
    )


def test_what_one_cell_does_not_know_is_not_known_of_all() -> None:
    one, other = fleet(1, age=None, size=None, swept=None), fleet(2, age=None, size=20, swept=3.0)
    for parts in ([one, other], [other, one]):
        both = combine(parts)
        assert (both.room.size, both.sweeper.last_round_s, both.queues[0].oldest_age_s) == (None, None, None)
    assert combine([one]) is one


def test_scales_add_up_and_those_that_drain_may_stop_first() -> None:
    def scale(name: str, draining: bool, age: int | None) -> FleetScale:
        workers = (StopCandidate(name=name, busy=0, draining=draining),)
        numbers: dict[str, Any] = {
            "wanted": 2,
            "workers": 1,
            "draining": int(draining),
            "queued": 3,
            "running": 1,
            "load": 4,
        }
        build = PoolScale(pool="serial", threads=1, build="1.4", **numbers)
        pool = PoolScale(
            pool="serial",
            threads=8,
            oldest_age_s=age,
            stop_first=workers,
            builds=(build,),
            **numbers,
        )
        return FleetScale(at_ms=5, wanted=2, pools=(pool,))

    both = combine([scale("serial@a", False, 4), scale("serial@b", True, None)])
    (pool,) = both.pools
    assert (both.at_ms, both.wanted, pool.wanted, pool.threads, pool.oldest_age_s) == (5, 4, 4, 8, 4)
    assert [worker.name for worker in pool.stop_first] == ["serial@b", "serial@a"]
    assert [(build.build, build.wanted, build.threads) for build in pool.builds] == [("1.4", 4, 1)]


def test_a_budget_of_all_cells_has_one_raise_and_the_spending_of_each() -> None:
    def state(spent: float, raised: float, *, is_spent: bool) -> BudgetState:
        return BudgetState(
            scope="all",
            per="day",
            usd=9,
            at_cap="park",
            raised_usd=raised,
            spent_usd=spent,
            is_spent=is_spent,
            noticed_at=NOW if is_spent else None,
            begins_at=NOW,
            ends_at=NOW + timedelta(days=1),
        )

    (both,) = combine_same([state(1, 2, is_spent=False), state(2, 5, is_spent=True)], "scope", "per")
    assert (both.usd, both.raised_usd, both.spent_usd, both.is_spent, both.noticed_at) == (9, 5, 3, True, NOW)
    assert (both.begins_at, both.ends_at) == (NOW, NOW + timedelta(days=1))


def test_lines_of_a_report_are_added_up_by_group() -> None:
    figures: dict[str, Any] = dict.fromkeys(SPEND_FIGURES, 2)
    lines = [SpendLine(tenant=tenant, model=None, **figures) for tenant in ("b:", "a:", "b:")]
    found = combine_same(lines, "tenant")
    assert [(line.tenant, line.model, line.calls, line.cost_usd) for line in found] == [
        ("b:", None, 4, 4.0),
        ("a:", None, 2, 2.0),
    ]


def test_each_rule_is_of_a_field_that_there_is() -> None:
    for kind, rules in RULES.items():
        assert rules.keys() <= kind.model_fields.keys()


# What is wrong with a fleet that looks healthy.


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


# The last hour, minute by minute.


ACTIVITY_NOW = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)


def turn(ago_s: float, took_s: float | None = None, state: str = "completed", cost: float | None = 0.5) -> RecentTurn:
    accepted = ACTIVITY_NOW - timedelta(seconds=ago_s)
    ended = None if took_s is None else accepted + timedelta(seconds=took_s)
    return RecentTurn("accepted" if ended is None else state, accepted, ended, cost)


def test_each_minute_has_what_was_accepted_and_what_ended_in_it() -> None:
    turns = [turn(10), turn(30, 5), turn(130, 100, "failed", None), turn(3_590, 1), turn(4_000, 3_990)]
    turns += [RecentTurn("rejected", ACTIVITY_NOW, ACTIVITY_NOW, None)]
    found = fleet_activity(turns, ACTIVITY_NOW)
    assert (len(found.minutes), found.is_whole) == (MINUTES, True)
    last, before, first = found.minutes[-1], found.minutes[-3], found.minutes[0]
    assert (last.accepted, last.ended, last.failed, last.cost_usd) == (3, 3, 1, 1.0)
    assert last.p95_s == 3_990
    assert (before.accepted, before.ended, before.p95_s) == (1, 0, None)
    assert (first.accepted, first.ended) == (1, 1)
    assert sum(minute.accepted for minute in found.minutes) == 5, "what is older is left out"


def test_it_says_when_there_were_more_than_it_looked_at() -> None:
    assert fleet_activity([turn(1)] * MAX_RECENT_TURNS, ACTIVITY_NOW).is_whole is False


def test_the_ninety_fifth_of_a_hundred() -> None:
    found = fleet_activity([turn(20, took / 10) for took in range(100)], ACTIVITY_NOW)
    assert found.minutes[-1].p95_s == 9.5
