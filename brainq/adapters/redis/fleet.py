"""The state of the fleet in Redis.

It holds the overview (read in two or three round trips), the live workers, the processes that have died, and the
metrics of all processes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from brainq.adapters.redis.connection import Client, Command, as_mapping, info_fields
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.listener import RedisStopSignals
from brainq.adapters.redis.script_methods import script
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.snapshots import brain_commands
from brainq.contracts.build import BuildWorker
from brainq.contracts.fleet import FleetBrain, FleetCapacity, FleetLanes, FleetRedis, FleetSweeper, FleetWorker, TurnKey
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.metrics.catalogue import DROPPED
from brainq.runtime.observe.metrics.counters import Cell, Counters

log = logger("brainq.presence")

METRICS_KEPT_MS = 30 * 86_400_000
BATCH_KEPT_MS = 86_400_000  # For this long a process may try to add a batch again.
MAX_CELLS = 10_000  # some 1 MB, and a third of a second of a scrape

_SINCE = {"queued": "created_at", "active": "active_at", "parked": "parked_at", "closing": "closing_at"}
MAX_TENANTS = 1_000
WORKERS_KEPT_MS = 86_400_000
PRESENCE_KEPT_MS = 600_000  # Processes that Redis has not seen since it started.


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """
    queues    of each list that was asked for how many lie in it, and the oldest of them
    waiting   of each word that was asked for how many wait for their tenant's turn
    """

    now_ms: int
    lanes: FleetLanes
    room: FleetCapacity
    sweeper: FleetSweeper
    redis: FleetRedis
    queues: tuple[tuple[int, str | None], ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RedisFleet:
    """A reader of the fleet: one round trip, one more for its turns, and one for brains that have a cap."""

    client: Client
    keys: Keys

    def look(self, lists: Sequence[str], words: Sequence[str] = ()) -> FleetFacts:
        """Read the facts. `lists` are the keys of the broker's lists on this Redis; `words` are those of
        `Keys.tenant_queue`."""
        (clock, holders, held, first, swept, size, live, rotating, capped, server, memory, disk, *found) = (
            self.client.many(
                [
                    ("TIME",),
                    ("HLEN", self.keys.lane_holders),
                    ("ZRANGE", self.keys.lane_leases, 0, -1, "WITHSCORES"),
                    ("ZRANGE", self.keys.index, 0, 0, "WITHSCORES"),
                    ("GET", self.keys.swept),
                    ("HMGET", self.keys.room, "all", "tenant", "caps"),
                    ("ZLEXCOUNT", self.keys.room_live, "[!", "+"),
                    ("ZCARD", self.keys.room_tenants),
                    ("ZCARD", self.keys.room_capped),
                    ("INFO", "server"),
                    ("INFO", "memory"),
                    ("INFO", "persistence"),
                    *(("ZCARD", self.keys.tenant_queue(word)) for word in words),
                    *(read for key in lists for read in (("LLEN", key), ("LINDEX", key, -1))),
                ]
            )
        )
        waits, found = found[: len(words)], found[len(words) :]
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        until, due = _scores(held), _scores(first)
        brains, waiting = self._brains(size[2] or "")
        due_ms = due[0] if due else now_ms
        return FleetFacts(
            now_ms=now_ms,
            lanes=FleetLanes(
                held=len(until),
                waiting=max(0, int(holders) - len(until)),
                lapsed=sum(score <= now_ms for score in until),
            ),
            room=FleetCapacity(
                size=size[0] and int(size[0]),
                share=size[1] and int(size[1]),
                live=int(live),
                tenants_waiting=waiting or int(rotating) + int(capped),
                brains=brains,
            ),
            sweeper=FleetSweeper(
                last_round_s=None if swept is None else max(0.0, (now_ms - int(swept)) / 1000),
                overdue_s=max(0.0, (now_ms - due_ms) / 1000),
            ),
            redis=_read_info(info_fields(server) | info_fields(memory) | info_fields(disk)),
            queues=tuple(zip(map(int, found[::2]), found[1::2], strict=True)),
            waiting=tuple(map(int, waits)),
        )

    def _brains(self, names: str) -> tuple[tuple[FleetBrain, ...], int]:
        """Return the brains of these names, and the number of tenants that wait for capacity."""
        if not names:
            return (), 0
        capped = names.split()
        waits = [self.keys.room_tenants, self.keys.room_capped, *map(self.keys.room_for, capped)]
        reads: list[Command] = [("ZUNION", len(waits), *waits)]
        tenants, *found = self.client.many(
            [*reads, *(read for name in capped for read in brain_commands(self.keys, name))]
        )
        brains = [
            FleetBrain(name=name, cap=int(cap), live=int(live))
            for name, cap, live in zip(capped, found[::2], found[1::2], strict=True)
            if cap is not None
        ]
        return tuple(brains), len(tenants)

    def waiting_turns(self) -> int:
        """Return the number of turns that wait for capacity.

        It reads at most MAX_TENANTS tenants with a share left, and as many without. A turn behind a live one of its
        session does not count.
        """
        found = self.client.many(
            [("ZRANGE", key, 0, MAX_TENANTS - 1) for key in (self.keys.room_tenants, self.keys.room_capped)]
        )
        lines: list[Command] = [("ZCARD", self.keys.room_line(tenant)) for tenants in found for tenant in tenants]
        return sum(map(int, self.client.many(lines))) if lines else 0

    def messages_in(self, lists: Sequence[str]) -> int:
        """Return the number of items in each list. Omits lists that this user may not read, and keys that are not
        lists."""
        found = self.client.replies([("LLEN", key) for key in lists])
        return sum(length for length in found if isinstance(length, int))

    def unannounced(self) -> list[str]:
        """Return the processes that are connected to Redis but have not announced for seconds that they work."""
        workers, watched = self.client.many([("SMEMBERS", self.keys.workers), ("HGETALL", self.keys.presence)])
        here = sorted(name for name, how in as_mapping(watched).items() if how.endswith(" 0"))
        names = sorted(workers) if here else []
        reports = [self.keys.worker(name, draining=draining) for name in names for draining in (False, True)]
        words = self.client.many([("MGET", *reports)])[0] if reports else []
        said = {names[at // 2].partition("@")[2] for at, word in enumerate(words) if word is not None}
        return [process for process in here if process not in said]

    def standing(self, turns: Sequence[TurnKey]) -> list[tuple[str, int | None]]:
        """Return the state of each turn and the Redis time (ms) since when it has that state. A turn that is not in
        Redis has `accepted` and None."""
        fields = ("state", *_SINCE.values())
        reads: list[Command] = [("HMGET", self.keys.turn(*turn), *fields) for turn in turns]
        found = [dict(zip(fields, row, strict=True)) for row in (self.client.many(reads) if reads else [])]
        return [(row["state"] or "accepted", _seconds_since(row)) for row in found]


def rung_at_s(bell: str | None) -> int | None:
    """Return when a doorbell was rung, in seconds of Redis' clock, or None if it does not contain the time. Pure."""
    try:
        tag = str(json.loads(bell or "")["properties"]["delivery_tag"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    when = tag.rpartition(".")[2][:10]  # lib/ring.lua writes Redis' seconds there, followed by microseconds.
    return int(when) if "." in tag and len(when) == 10 and when.isdecimal() else None


def _scores(found: Sequence[Any]) -> list[float]:
    """Return the scores of a raw reply, which has pairs, or a flat list in the older protocol."""
    if found and isinstance(found[0], list):
        return [float(score) for _, score in found]
    return [float(score) for score in found[1::2]]


def _seconds_since(row: Mapping[str, str | None]) -> int | None:
    at = row.get(_SINCE.get(row["state"] or "", ""))
    return int(at) if at else None


def _read_info(info: Mapping[str, str]) -> FleetRedis:
    return FleetRedis(
        version=info.get("valkey_version") or info.get("redis_version", ""),
        used_bytes=int(info.get("used_memory", 0)),
        max_bytes=int(info.get("maxmemory", 0)) or None,
        policy=info.get("maxmemory_policy", ""),
        keeps_on_disk=info.get("aof_enabled") == "1",
    )


@dataclass(frozen=True, slots=True)
class RedisWorkers:
    """The heartbeats of workers.

    Each worker reports every few seconds, and its report lasts a little longer. A set has the names of all workers that
    reported.
    """

    client: Client
    keys: Keys

    def announce(self, process: str, worker: FleetWorker, for_s: float, *, draining: bool = False) -> None:
        """Report that a worker is alive for the next `for_s` seconds. `process` is unique to it. A `draining` worker
        takes no more work; it has another key, so that older releases count it as gone."""
        self.client.many(
            [
                ("DEL", self.keys.worker(process, draining=not draining)),
                (
                    "SET",
                    self.keys.worker(process, draining=draining),
                    # Older releases read this record, and refuse unknown fields.
                    worker.model_dump_json(exclude={"build", "lacks"}),
                    "PX",
                    int(for_s * 1000),
                ),
                ("SADD", self.keys.workers, process),
                ("PEXPIRE", self.keys.workers, WORKERS_KEPT_MS),
            ]
        )

    def withdraw(self, process: str) -> None:
        """Remove the report of a worker that ends."""
        reports = [self.keys.worker(process, draining=draining) for draining in (False, True)]
        self.client.many([("DEL", *reports), ("SREM", self.keys.workers, process)])

    def withdraw_process(self, process: str) -> None:
        """Remove all reports of a process that is gone."""
        for name in self._names():
            if name.endswith(f"@{process}"):
                self.withdraw(name)

    def forget_dead(self) -> None:
        """Remove workers without a recent report from the set of names."""
        names = self._names()
        dead = [name for name, word in zip(names, self._words(names), strict=True) if word is None]
        if dead:
            self.client.many([("SREM", self.keys.workers, *dead)])

    def alive(self) -> tuple[FleetWorker, ...]:
        """Return the workers that take work, by name."""
        words = self._words(self._names())
        return tuple(FleetWorker.from_stored(word) for word in words if word is not None)

    def of_builds(self) -> tuple[FleetWorker, ...]:
        """Return the workers that take work, each with its build and what it lacks."""
        names = self._names()
        if not names:
            return ()
        (reports,) = self.client.many([("MGET", *map(self.keys.build, names))])
        return tuple(
            _with_build(FleetWorker.from_stored(word), report)
            for word, report in zip(self._words(names), reports, strict=True)
            if word is not None
        )

    def draining(self) -> tuple[FleetWorker, ...]:
        """Return the workers that are draining, by name."""
        words = self._words(self._names(), draining=True)
        return tuple(FleetWorker.from_stored(word) for word in words if word is not None)

    def _names(self) -> list[str]:
        (names,) = self.client.many([("SMEMBERS", self.keys.workers)])
        return sorted(names)

    def _words(self, names: Sequence[str], *, draining: bool = False) -> list[str | None]:
        if not names:
            return []
        (words,) = self.client.many([("MGET", *(self.keys.worker(name, draining=draining) for name in names))])
        return list(words)


def _with_build(worker: FleetWorker, report: str | None) -> FleetWorker:
    if report is None:
        return worker
    build = BuildWorker.from_json(report)
    return worker.model_copy(update={"build": build.build, "lacks": build.lacks})


class RedisPresence:
    """The presence of this process. After a kill the kernel closes its sockets, Redis notices, and a sweeper ends its
    leases at once.

    A process subscribes to its own channel on the connection for cancels. Redis loses that subscription 4 to 17 ms
    after a SIGKILL (measured, 10 of 10). A frozen process keeps its connection, and so does a host that vanished; their
    leases have to lapse.
    """

    def __init__(self, scripts: Scripts, stops: RedisStopSignals, process: str) -> None:
        self._scripts = scripts
        self._keys = scripts.keys
        self._stops = stops
        self._process = process
        self._is_listening = False
        self._is_deaf = False

    def begin(self) -> None:
        """Subscribe, so that this process's death is noticed. Call it before any other subscription. Idempotent."""
        if not self._is_listening:
            self._stops.hear(self._keys.alive + self._process, _ignore, self.join)
            self._stops.listen()
            self._is_listening = True

    def join(self) -> None:
        """Make Redis watch this process if it is subscribed. Repeated for as long as the process lives."""
        if not self._is_listening:
            return  # A worker that never began holds nothing.
        word = self._join()
        if word == "DEAF" and not self._is_deaf:
            log.info("Redis does not hear this process listen: if it dies its lease says so", process=self._process)
        self._is_deaf = word == "DEAF"

    @script("presence_join", keep_ms=PRESENCE_KEPT_MS)
    def _join(self) -> Literal["WATCHED", "DEAF"]: ...


def unwatched(client: Client, keys: Keys) -> list[str]:
    """Return the live workers whose death Redis would not notice."""
    workers, watched = client.many([("SMEMBERS", keys.workers), ("HKEYS", keys.presence)])
    words = client.many([("MGET", *(keys.worker(name) for name in sorted(workers)))])[0] if workers else []
    alive = [name for name, word in zip(sorted(workers), words, strict=True) if word is not None]
    return [name for name in alive if name.partition("@")[2] not in watched]


def _ignore(_: str) -> None:
    """Ignore a message; nothing is ever published on this channel."""


class RedisMetrics:
    """The metrics of all processes in one hash, with fields such as
    `["brainq_turns","shop","completed","answered"]`."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def flush(self, counters: Counters) -> None:
        """Add the counts since the last flush. Sends nothing if there are none. Counts that could not be sent are sent
        again the next time, and added once."""
        batch = counters.batch()
        if batch is None:
            return
        deltas = [part for cell, by in batch.deltas.items() for part in (_cell_field(cell), f"{by:.17g}")]
        self._flush(counters.process, batch.number, _cell_field((DROPPED.name,)), deltas)
        counters.mark_flushed(batch)

    @script("metrics_flush", keep_ms=METRICS_KEPT_MS, remember_ms=BATCH_KEPT_MS, most=MAX_CELLS)
    def _flush(self, process: str, number: int, dropped: str, deltas: Sequence[str]) -> None: ...

    def totals(self) -> Mapping[Cell, float]:
        """Return the totals of all metrics, summed over all processes."""
        (found,) = self._scripts.client.many([("HGETALL", self._scripts.keys.metrics)])
        return {tuple(json.loads(field)): float(value) for field, value in as_mapping(found).items()}


def _cell_field(cell: Cell) -> str:
    return json.dumps(cell, ensure_ascii=False, separators=(",", ":"))
