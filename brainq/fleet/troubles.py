"""Find faults in a fleet that looks healthy, from the outside: from its queues, its workers and its sweeper.

A worker whose own health check fails cannot report that. A few questions find nearly all such faults: is a doorbell old
while workers are idle? Has no thread of a pool become free for longer than a task may take? Does every connected
process announce that it works?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from brainq.contracts.fleet import FleetQueue, FleetSweeper, FleetTrouble, FleetWorker
from brainq.engine.brain.brain import Brain

QUEUE_LATE_S = 10
"""A doorbell that is older than this is stuck, because the sweeper rings again after 5 s, even for a lost doorbell."""
SWEEP_LATE_S = 15.0
LONGEST_S = 900.0
"""The longest time of a task, in seconds, if the limits of the brains are unknown."""
TROUBLE_KINDS = ("unfit_worker", "idle_queue", "unserved_queue", "full_pool", "late_sweep", "unannounced")
RESTART = "read its log and restart it"


def longest_limits(brains: Iterable[Brain]) -> dict[str, float]:
    """Return the longest time that a task of each pool may take, in seconds, according to these
    brains' limits. Pure."""
    longest: dict[str, float] = {}
    for brain in brains:
        limits = [("coordinator", brain.limits.timeout_s)]
        limits += [
            ("parallel" if spec.effect.is_read else "serial", spec.timeout_s) for spec in brain.tools.specs.values()
        ]
        for pool, limit_s in limits:
            longest[pool] = max(longest.get(pool, 0.0), limit_s)
    return longest


def fleet_troubles(
    queues: Sequence[FleetQueue],
    workers: Sequence[FleetWorker],
    sweeper: FleetSweeper,
    unannounced: Sequence[str] = (),
    longest_s: Mapping[str, float] | None = None,
) -> tuple[FleetTrouble, ...]:
    """Return the faults. Pure.

    unannounced   processes that are connected to Redis, but have not announced for seconds that they work longest_s
    the longest time that a task may take, by pool
    """
    found = [
        _trouble(
            "unfit_worker",
            each.name,
            f"{each.name} cannot work: {each.lacks}",
            "provide what is missing; the worker then continues by itself",
        )
        for each in workers
        if each.lacks
    ]
    found += [trouble for queue in queues if (trouble := _queue_trouble(queue, workers, longest_s or {})) is not None]
    if sweeper.overdue_s > SWEEP_LATE_S:
        text = f"the sweeper is {sweeper.overdue_s:.0f} s late, so dead workers are found late"
        remedy = "start a coordinator, or one more: brainq worker coordinator"
        found.append(_trouble("late_sweep", "sweeper", text, remedy))
    for process in unannounced:
        text = f"process {process} is connected to Redis but has not announced for seconds that it works"
        found.append(_trouble("unannounced", process, text, RESTART))
    return tuple(found)


def _queue_trouble(
    queue: FleetQueue, workers: Sequence[FleetWorker], longest_s: Mapping[str, float]
) -> FleetTrouble | None:
    age_s = queue.oldest_age_s or 0
    if age_s <= QUEUE_LATE_S:
        return None
    readers = [each for each in workers if each.pool == queue.pool and queue.build in ("", each.build)]
    late = f"a doorbell has waited in {queue.name} for {age_s} s"
    if not readers:
        return _trouble("unserved_queue", queue.name, f"{late}, and no worker reads it", f"brainq worker {queue.pool}")
    if idle := [each.name for each in readers if 2 * each.busy < each.threads and not each.lacks]:
        return _trouble(
            "idle_queue", queue.name, f"{late} although {', '.join(idle)} is idle, so it does not consume", RESTART
        )
    limit_s = longest_s.get(queue.pool, LONGEST_S)
    if age_s > limit_s and all(each.busy >= each.threads for each in readers):
        text = f"{late}: no thread of pool {queue.pool} came free for longer than a task may take, {limit_s:g} s"
        return _trouble("full_pool", queue.name, text, f"start one more: brainq worker {queue.pool}")
    return None


def _trouble(kind: str, subject: str, text: str, remedy: str) -> FleetTrouble:
    return FleetTrouble(kind=kind, subject=subject, text=text, remedy=remedy)
