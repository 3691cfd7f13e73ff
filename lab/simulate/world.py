"""One world: a fleet, its queues and its faults, from the first turn until nothing is left to do."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from brainq.adapters.celery import names
from brainq.adapters.redis.connection import is_redis_unavailable
from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.contracts.claim import Opened
from brainq.engine.tools.context import RunContext
from brainq.engine.visit import pool_of
from brainq.runtime.observe.work_events import WorkEvents
from brainq.runtime.processes.pool_threads import PoolThreads
from lab.simulate.brain import ONCE, make_brain
from lab.simulate.faults import LONGEST_AWAY_S, LONGEST_FREEZE_S, LONGEST_LATE_S, Chances, Faults
from lab.simulate.hub import Killed, Task
from lab.simulate.judge import judge
from lab.simulate.ledger import Effect, Ledger
from lab.simulate.lines import Line
from lab.simulate.people import People
from lab.simulate.process import Place, Process, Servers

THREADS = {"coordinator": 8, "parallel": 4, "serial": 1, "finalizer": 4}
POOLS: dict[str, tuple[int, dict[str, int]]] = {
    **{pool: (1, {pool: count}) for pool, count in THREADS.items()},
    "all": (2, THREADS),
    "front": (1, {}),
}
"""For each kind of process, how many there are and the threads of each pool that it serves. The threads of a process
with several pools continue with the work that theirs opens."""
TAKE_AFTER_S = 0.003
FULL_FOR_S = 0.1  # the delay until a message in a full worker looks again for a free thread
LOOK_EVERY_S = 1.0
CALM_AFTER_S = 30.0  # after this time from the last submit there are no more faults
MOST_S = 7_200.0  # a turn whose sender died waits an hour for its readiness
SHOWN = 60  # lines of the trace that are kept
LEASE_S = 10.0


class World:
    """A simulated deployment. `broken` are the broken promises."""

    def __init__(self, seed: str, turns: int, servers: Servers, rng: Random, chances: Chances) -> None:
        self.seed = seed
        self.turns = turns
        self.servers = servers
        self.hub = servers.hub
        self.faults = Faults(rng, chances)
        self.broken: list[str] = []
        self.shown: deque[str] = deque(maxlen=SHOWN)
        self.ended_us: dict[str, int] = {}
        self.away: list[tuple[str, int, int]] = []  # (server, start, end)
        self._digest = hashlib.sha256()
        self._rng = rng
        self._numbers = Counter[str]()
        self._is_taking = False
        self._stops = Line(servers.socket_path, self._keys.stops)
        self.ledger = Ledger(ONCE, self.break_promise, self._stood_still)
        self.people = People(self)
        self.brain = make_brain(
            seed, self._record, self.people.take_token, lambda: self.faults.happens(chances.callback_fails)
        )
        self.processes: list[Process] = []
        self.is_over = False
        self.endings = Counter[str]()
        self.events = Continued(self)
        self._quiet = 0
        self._began_us = self.hub.now_us

    @property
    def virtual_s(self) -> float:
        """Return how long the world has lasted, in virtual seconds."""
        return (self.hub.now_us - self._began_us) / 1_000_000

    @property
    def _keys(self) -> Any:
        return self.servers.scripts.keys

    @property
    def digest(self) -> str:
        """Return the digest of the whole trace."""
        return self._digest.hexdigest()[:16]

    def run(self) -> None:
        """Run the world from its first turn to its last key, and judge it."""
        for pool, (count, _) in POOLS.items():
            for _ in range(count):
                self._start(pool)
        self.people.begin()
        self.hub.after(LOOK_EVERY_S, self._look)
        for server, every_s in (
            ("redis", self.faults.chances.redis_away_every_s),
            ("sql", self.faults.chances.sql_away_every_s),
        ):
            self._go_away_later(server, every_s)
        began_us = self.hub.now_us
        self.hub.run(lambda: self.is_over or self.hub.now_us - began_us > MOST_S * 1_000_000)
        if not self.is_over:
            busy = [f"{process.name} {process.busy}" for process in self.processes if process.busy]
            self.break_promise(f"turns do not end: {self.unfinished()[:5]}; threads in use: {busy}")
        self._stop()
        judge(self)

    def note(self, *line: object) -> None:
        """Add a line to the trace."""
        text = f"{(self.hub.now_us - self._began_us) / 1_000_000:10.4f}  " + "  ".join(map(str, line))
        self._digest.update(text.encode())
        self.shown.append(text)

    def break_promise(self, what: str) -> None:
        self.note("BROKEN", what)
        self.broken.append(what)

    # Trips.

    def before(self, server: str, what: str) -> str:
        task = self.hub.current
        if task is None:
            return ""
        fate = self.faults.before(server)
        self.hub.sleep(self.faults.latency_s() + (self._rng.random() * LONGEST_LATE_S if fate == "slow" else 0.0))
        process = cast(Process, task.owner)
        if self._is_away(server):
            self.hub.sleep(0.05)
            return "lost"
        return self._befalls(process, fate, f"{server} {what}")

    def after(self, server: str, what: str, reply: object) -> str:
        task = self.hub.current
        if task is None:
            return ""
        process = cast(Process, task.owner)
        self.note(process.name, what, _word(reply))
        if server == "redis":
            self._look_at(what)
        return self._befalls(process, self.faults.after(server), f"{server} {what}")

    def _befalls(self, process: Process, fate: str, where: str) -> str:
        if not fate:
            return ""
        if fate == "lost":
            self._fire(f"{where.partition(' ')[0]} lost", process.name, where)
            return "lost"
        if fate == "slow":
            self._fire("slow", process.name, where)
        elif fate == "freezes":
            self.freeze(process, where)
            self.hub.sleep(0.0)
        else:
            self._fire(fate, process.name, where)
            self.kill(process)
            raise Killed
        return ""

    # Processes.

    def child(self, parent: Process) -> Process:
        """Start a child of `parent` for one suspect. It ends with its parent."""
        child = self._make("alone", {})
        parent.children.append(child)
        return child

    def end_child(self, child: Process) -> None:
        child.is_dead = True
        self.hub.after(0.0, lambda: self._bury(child))

    def freeze(self, process: Process, where: str) -> None:
        for_s = self._rng.random() ** 2 * LONGEST_FREEZE_S
        process.frozen_at_us.append(self.hub.now_us)
        process.frozen_until_us = self.hub.now_us + int(for_s * 1_000_000)
        self._fire("frozen", process.name, where, f"{for_s:.1f} s")

    def kill(self, process: Process) -> None:
        """Kill a process. Its supervisor starts another one."""
        process.is_dead = True

        def bury() -> None:
            self._bury(process)
            if process in self.processes:
                self.processes.remove(process)
                self.hub.after(0.5 + self._rng.random() * 2.5, lambda: self._start(process.kind))

        self.hub.after(0.0, bury)

    def _bury(self, process: Process) -> None:
        self.hub.end_of(process)
        process.hang_up()
        for child in process.children:
            child.is_dead = True
            self._bury(child)
        process.children.clear()
        if process.on_death is not None:
            process.on_death.set()

    def _start(self, kind: str) -> None:
        if self.is_over:
            return
        process = self._make(kind, POOLS[kind][1])
        self.processes.append(process)
        self.hub.spawn("begin", process, process.begin)

    def _make(self, kind: str, threads: dict[str, int]) -> Process:
        self._numbers[kind] += 1
        return Process(self, f"{kind}{self._numbers[kind]}", kind, self.brain, PoolThreads(threads))

    def _stop(self) -> None:
        for process in self.processes:
            process.is_dead = True
            self._bury(process)
        self._stops.close()

    # Doorbells and stops.

    def _look_at(self, what: str) -> None:
        """Deliver the doorbells and stops that these scripts may have published."""
        for name in what.split("+"):
            if name in self.servers.ringing:
                self.take_soon()
            if name in self.servers.publishing:
                for stopped in self._stops.heard():
                    self._tell(stopped)

    def _tell(self, stopped: str) -> None:
        for process in self.processes:
            if process.stops is not None and not self.faults.happens(self.faults.chances.stop_unheard):
                stops = process.stops
                self.hub.spawn("hear", process, lambda stops=stops: stops.tell(stopped), after_s=0.001)

    def take_soon(self) -> None:
        if not self._is_taking:
            self._is_taking = True
            self.hub.after(TAKE_AFTER_S, self._take)

    def _take(self) -> None:
        self._is_taking = False
        wanted: list[tuple[str, str]] = []
        for pool, queues in names.POOL_QUEUES.items():
            free = sum(p.threads.free(pool) for p in self._awake(pool))
            keys = [key(self.servers.settings, queue) for key in (names.queue_key, names.later_key) for queue in queues]
            wanted += [(pool, key) for key in keys for _ in range(min(free, 2))]
        found = self.servers.client.now([("RPOP", key) for _, key in wanted]) if wanted else []
        for (pool, key), text in zip(wanted, found, strict=True):
            if text is not None:
                self._arrives(pool, key, text)
        if any(found):
            self.take_soon()

    def _awake(self, pool: str) -> list[Process]:
        return [
            p
            for p in self.processes
            if pool in p.threads.pools and not (p.is_dead or p.threads.draining or p.frozen_until_us > self.hub.now_us)
        ]

    def _arrives(self, pool: str, key: str, text: str) -> None:
        """Handle a message that a worker has popped from its queue."""
        fate = self.faults.bell()
        message = json.loads(text)
        task, args = message["headers"]["task"], json.loads(message["body"])[0]
        if fate:
            self._fire(f"bell {fate}", task, *args[1:])
        if fate == "lost":
            return
        delay_s = self._rng.random() * LONGEST_LATE_S if fate == "late" else 0.0
        self.hub.after(delay_s, lambda: self._begin(pool, task, args))
        if fate == "repeated":
            self.hub.after(self._rng.random() * LONGEST_LATE_S, lambda: self._begin(pool, task, args))

    def _begin(self, pool: str, task: str, args: list[Any]) -> None:
        awake = self._awake(pool)
        if not awake:
            self.note("nobody takes", task, *args[1:])
            return
        if not (free := [p for p in awake if p.threads.free(pool)]):
            self.hub.after(FULL_FOR_S, lambda: self._begin(pool, task, args))
            return
        process = self._rng.choice(free)
        place = Place(self, process, pool)

        def answer() -> None:
            try:
                self.note(process.name, "does", task, *args[1:], process.answer(task, args, place))
            finally:
                place.leave()

        self.hub.spawn(f"{task} {args[1:]}", process, answer)

    # Outages, freezes and the end.

    def _fire(self, kind: str, *where: object) -> None:
        self.faults.fired[kind] += 1
        self.note("FAULT", kind, *where)

    def away_ms(self, until_ms: int) -> int:
        """Return how long servers were away in the three minutes before a time. Deadlines may be missed by as much."""
        since_us = (until_ms - 180_000) * 1000
        return sum(until - since for _, since, until in self.away if since_us < until <= until_ms * 1000) // 1000

    def _is_away(self, server: str) -> bool:
        return any(name == server and until_us > self.hub.now_us for name, _, until_us in self.away[-4:])

    def _go_away_later(self, server: str, every_s: float) -> None:
        def go() -> None:
            if self.faults.is_calm:
                return
            for_s = self._rng.random() * LONGEST_AWAY_S
            self.away.append((server, self.hub.now_us, self.hub.now_us + int(for_s * 1_000_000)))
            self._fire(f"{server} away", f"{for_s:.1f} s")
            self._go_away_later(server, every_s)

        self.hub.after(self._rng.expovariate(1 / every_s), go)

    def _look(self) -> None:
        """Check once a second whether the world is over."""
        if self.people.last_s is not None and self.hub.now_s - self.people.last_s > CALM_AFTER_S:
            self.faults.is_calm = True
        self._drain()
        self.take_soon()
        is_quiet = self.faults.is_calm and not self.unfinished()
        thawed = all(p.frozen_until_us <= self.hub.now_us for p in self.processes)
        self._quiet = self._quiet + 1 if is_quiet and thawed and not any(p.busy for p in self.processes) else 0
        if self._quiet >= 3:
            self.is_over = True
            return
        self.hub.after(LOOK_EVERY_S, self._look)

    def _drain(self) -> None:
        """Occasionally tell a worker to stop: it takes no more work and exits when its current work ends."""
        for process in self.processes:
            if process.threads.draining and not process.busy and not process.is_dead:
                self.kill(process)
        if self.faults.happens(self.faults.chances.drains):
            process = self._rng.choice([process for process in self.processes if process.threads.pools])
            process.threads.draining = True
            self._fire("drains", process.name)

    def unfinished(self) -> list[str]:
        """Return the turns that still need work."""
        return self.people.unfinished()

    def failed(self, task: Task, failure: Exception) -> None:
        """Note what a task raised. It breaks a promise unless Redis or SQL was away."""
        self.note(task.owner.name, task.label, "raised", type(failure).__name__)
        if not (is_redis_unavailable(failure) or is_sql_unavailable(failure)):
            self.break_promise(f"{task.owner.name} {task.label} raised {type(failure).__name__}: {failure}")

    def _record(self, context: RunContext, tool: str, lane: str) -> Effect:
        assert self.hub.current is not None
        effect = Effect(
            context.turn_id,
            context.call_id,
            context.attempt,
            tool,
            context.idempotency_key,
            lane,
            self.hub.current.owner,
            self.hub.now_us,
        )
        self.note(effect.owner.name, "runs", tool, context.turn_id, context.call_id, context.attempt)
        self.ledger.begin(effect)
        return effect

    def _stood_still(self, effect: Effect) -> bool:
        """Return whether the effect's process was frozen, or could not beat, for so long that it was considered
        dead."""
        process = cast(Process, effect.owner)
        frozen = process.frozen_until_us > effect.began_us
        return frozen or any(until_us > effect.began_us for name, _, until_us in self.away if name == "redis")


class Continued(WorkEvents):
    """A counter of the work that threads continue with."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.counts = Counter[str]()

    def began(self, claim: Opened) -> None:
        self.counts[pool_of(claim)] += 1
        self._world.note("continues", claim.owner, claim.turn_id, pool_of(claim))


def _word(reply: object) -> str:
    """Return the first word of a script's reply. For several scripts, the words are joined by `+`."""
    if isinstance(reply, list):
        found = cast("Sequence[Any]", reply)
        if found and isinstance(found[0], list):
            return "+".join(_word(each) for each in found)
        return str(found[0])[:40] if found and isinstance(found[0], str) else ""
    return ""
