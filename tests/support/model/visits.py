"""Processes of several pools whose threads continue with what their work opens, and the rules for that.

Draws are made by a generator of its own, and only in some seeds, so that the schedules of the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from brainq.adapters.celery import names
from brainq.app.wiring.visits import Visits
from brainq.contracts.status import Effect
from brainq.engine.visit import POOL_OF
from brainq.runtime.observe.work_events import UNWATCHED
from brainq.runtime.processes.pool_threads import PoolThreads
from tests.support.model.bells import Bells
from tests.support.model.rules import require
from tests.support.stand_in import stand_in

CONTINUES, OF = 3, 4  # of each four seeds
SEVERAL_POOLS = (("coordinator", "parallel", "finalizer"), tuple(names.POOL_QUEUES))
STAYS = SimpleNamespace(stay=True, doorbell="transactional")
CLAIMED_FOR_THREADS = ("CALL", "TURN", "FINAL")  # replies of scripts
_QUEUES = {"turns": names.TURNS_QUEUE, "finalize": names.FINALIZE_QUEUE} | {
    effect.value: names.tool_queue(effect) for effect in Effect
}


class ModelVisits:
    """The visits of a process: young ones and old ones, and its threads. One of a single pool continues with nothing.

    machines   has coordinator, runner, finalizer and owner
    """

    def __init__(self, seed: int, machines: Any) -> None:
        owner: str = machines.owner
        self._rng = Random(f"{seed} {owner}")
        pools = () if owner.startswith("w0") else SEVERAL_POOLS[owner.startswith("w2")]
        is_on = seed % OF == CONTINUES
        self.threads = PoolThreads({pool: self._rng.randint(1, 3) for pool in pools} if is_on else {})
        wiring = SimpleNamespace(
            settings=STAYS,
            serves=frozenset(Effect),
            coordinator=machines.coordinator,
            runner=machines.runner,
            finalizer=machines.finalizer,
            owner=owner,
        )
        self._visits = [Visits(stand_in(wiring), self.threads, visit_s) for visit_s in (3600.0, 0.0)]
        self._alone: Mapping[str, Callable[..., str]] = {
            names.TURN_ADVANCE: machines.coordinator.advance,
            names.CALL_RUN: partial(machines.runner.run, abandon=_never),
            names.FINALIZE_STEP: machines.finalizer.run,
        }

    def answer(self, queue: str, task: str, args: Sequence[Any]) -> Callable[[], str]:
        """Return the handling of a message. A process without a free thread for it handles it as one of its pool."""
        pool = names.pool_of(queue)
        if task == names.FINALIZE_STEP or not self.threads.try_take(pool):
            return lambda: self._alone[task](*args)
        self.threads.draining = self._rng.random() < 0.05
        self.threads.paused = ("serial",) if self._rng.random() < 0.1 else ()
        visits = self._visits[self._rng.random() < 0.1]
        handle: Callable[..., str] = visits.advance if task == names.TURN_ADVANCE else visits.run_call

        def run() -> str:
            try:
                return handle(*args, UNWATCHED, _never)
            finally:
                self.threads.give_back(pool)

        return run

    def check_threads(self) -> None:
        """Require that every thread was given back, once all work is over."""
        busy = {pool: self.threads.busy(pool) for pool in self.threads.pools}
        require(not any(busy.values()), "threads are counted that do nothing", busy)


@dataclass(frozen=True, slots=True)
class VisitRules:
    """The rules for claims that scripts make for their threads."""

    bells: Bells

    def check(self, name: str, given: Mapping[str, Any], reply: Sequence[str]) -> None:
        """Raise BrokenRule if a thread was given work that it was not offered for, or for which others wait longer."""
        if reply[0] not in CLAIMED_FOR_THREADS:
            return
        queue = {"TURN": "turns", "FINAL": "finalize"}.get(reply[0]) or reply[6]
        offered = dict(word.split(":") for word in given["stay"].split())
        free = offered.get(queue, "none")
        require(free.isdigit(), f"{name}: a thread continues with what it does not serve", queue, given["stay"])
        waiting = sum(self._waiting(each, given["tid"]) for each in _QUEUES if POOL_OF[each] == POOL_OF[queue])
        require(waiting <= int(free), f"{name}: a thread continues though others wait", queue, free, waiting)

    def _waiting(self, word: str, turn_id: str) -> int:
        """Return how many messages of other turns wait in a queue. Those that wait for a place count for many."""
        bells, queued = self.bells.waiting(_QUEUES[word], word)
        others = [bell for bell in bells if f'"{turn_id}.' not in bell]
        return len(others) + 1000 * len([member for member in queued if member.split(" ")[1] != turn_id])


def _never(_: object) -> None:
    raise AssertionError("the model's functions keep no thread")
