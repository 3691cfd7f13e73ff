"""The workers of all pools in one program: their threads, the sweeper, and the signs of life."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from brainq.adapters.celery import names
from brainq.adapters.redis.queues import QueueReader
from brainq.app.devserver.local_fleet import POOLS
from brainq.app.local.answers import Answers
from brainq.app.local.pool_loop import FinalizerLists, PoolLists, PoolLoop
from brainq.app.wiring import Wiring
from brainq.contracts.fleet import FleetWorker
from brainq.engine.models.providers import resolve_model, warm_up
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.threads import KeptThread
from brainq.runtime.processes.later_threads import LATER_THREADS
from brainq.runtime.processes.pool_threads import POOL_THREADS, PoolThreads

log = logger("brainq.local")
ANNOUNCE_EVERY_S = 3.0
PRESENT_FOR_S = 10.0
STOP_S = 1.0  # for each thread beside the pools'


class LocalWorker:
    """All pools of one wiring, in threads of this process.

    A thread answers one message at a time by the same machines as a worker process. Each pool has a budget of threads,
    `BRAINQ_CONCURRENCY`, which are started when they are needed.
    """

    def __init__(self, wiring: Wiring, budget: PoolThreads = POOL_THREADS) -> None:
        self.wiring = wiring
        self._budget = budget
        self._answers = Answers(wiring)
        self._stopping = threading.Event()
        self._loops: list[PoolLoop] = []
        self._kept: list[KeptThread] = []

    def begin(self) -> None:
        """Start working. The caller has the directory to itself: what other processes held there goes on here at once.

        Raises Unreachable if Redis or SQL does not answer, SetupError and InvalidInput for a model that cannot be used,
        and RuntimeError if the system refuses a thread.
        """
        wiring = self.wiring
        wiring.warm_up()
        wiring.state.sweeper.lapse_others(wiring.owner)
        for brain in wiring.brains:
            warm_up(resolve_model(brain.model)[0])
        wiring.state.presence.begin()
        self._answers.prepare()
        concurrency = wiring.settings.concurrency
        threads = {pool: int(getattr(concurrency, pool)) for pool in POOLS}
        self._budget.draining = False
        self._budget.serve(threads)
        self._loops = [self._loop(pool, threads[pool]) for pool in POOLS]
        self._keep("brainq-announcer", partial(self._announce, threads))
        for loop in self._loops:
            loop.begin()
        self._keep("brainq-sweeper", self._sweep)
        if wiring.settings.webhooks.get_secret_value():
            self._keep("brainq-webhooks", wiring.webhook_sender.run)

    def close(self, grace_s: float) -> None:
        """Stop working: take no more turns and calls.

        What runs, and the steps after results that are due, may end within `grace_s` seconds. What does not end keeps
        its thread until the process ends, and its lease lapses.
        """
        if not self._loops:
            return
        until = time.monotonic() + grace_s
        self._budget.draining = True
        *first, finalizer = self._loops
        for loop in first:
            loop.drain()
        for loop in first:
            loop.join(until)
        self._finish_steps(finalizer, until)
        self._stopping.set()
        for thread in self._kept:
            thread.stop(STOP_S)
        for loop in self._loops:
            loop.close()
        self._budget.serve({})
        LATER_THREADS.follow(0, {})

    @property
    def is_idle(self) -> bool:
        """Whether no message is being answered, and none waits."""
        queues = [self._keys(queues) for queues in names.POOL_QUEUES.values()]
        waiting = self.wiring.state.fleet.messages_in([key for keys in queues for key in keys])
        return not waiting and not any(loop.busy for loop in self._loops)

    def kill(self) -> None:
        """Stop as if this process had died: at once, and without a word to Redis. Calls keep their threads."""
        self.wiring.beats.stop()
        self.wiring.job_beats.stop()
        for loop in self._loops:
            loop.drain()
        for loop in self._loops:
            loop.leave()
        self.close(0.0)

    def _finish_steps(self, loop: PoolLoop, until: float) -> None:
        """Have the finalizer work until its queues are empty."""
        keys = self._keys(names.FINALIZER_QUEUES)
        while time.monotonic() < until and (loop.busy or self.wiring.state.fleet.messages_in(keys)):
            time.sleep(0.005)
        loop.drain()
        loop.join(until)

    def _loop(self, pool: str, threads: int) -> PoolLoop:
        keys = self._keys(names.POOL_QUEUES[pool])
        lists = PoolLists(keys)
        if pool == "finalizer":
            lists = FinalizerLists(keys, self._keys((names.FINALIZE_QUEUE,), first_only=True), threads)
        return PoolLoop(pool, lists, QueueReader(self.wiring.state.redis), self._answers, self._budget)

    def _keys(self, queues: tuple[str, ...], *, first_only: bool = False) -> list[str]:
        """Return the lists of these queues, and of those that only workers of this build read."""
        own = [names.build_queue(queue, build) for build in self.wiring.build.queues for queue in queues]
        lists = [*queues, *own] if first_only else names.read_order([*queues, *own])
        return [self.wiring.settings.key_prefix + name for name in lists]

    def _sweep(self, stopping: threading.Event) -> None:
        sweeper = self.wiring.sweeper
        sweeper.sweep()  # at once: the program before this one may have been killed
        sweeper.run(stopping)

    def _announce(self, threads: Mapping[str, int], stopping: threading.Event) -> None:
        """Report every few seconds that the pools are served, as worker processes do, until it stops."""
        state, owner = self.wiring.state, self.wiring.owner
        busy = {loop.pool: loop for loop in self._loops}
        outage = OutageLog(log, "reporting that this program works")
        state.workers.forget_dead()
        while not stopping.is_set():
            try:
                for pool, most in threads.items():
                    name = f"{pool}@{owner}"
                    worker = FleetWorker(name=name, pool=pool, threads=most, busy=busy[pool].busy)
                    state.workers.announce(name, worker, PRESENT_FOR_S)
                state.presence.join()
                state.metrics.flush(COUNTERS)
                outage.worked()
            except Exception as failure:
                outage.failed(failure)
            stopping.wait(ANNOUNCE_EVERY_S)
        state.workers.withdraw_process(owner)

    def _keep(self, name: str, work: Callable[[threading.Event], object]) -> None:
        thread = KeptThread(name, work, self._stopping)
        self._kept.append(thread)
        thread.ensure()
