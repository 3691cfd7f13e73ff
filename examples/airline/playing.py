"""Playing recorded sessions through real worker pools, many at once."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from brainq import Client
from brainq.app.devserver.local_fleet import POOLS, LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.client.connection import wiring_of
from brainq.runtime.settings import load_settings
from examples.airline.agent import Options, make_brain
from examples.airline.checking import Checked, Played, check
from examples.airline.database import AirlineDatabase, make_database
from examples.airline.killing import Killer
from examples.airline.recorded import RecordedSession
from examples.airline.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
RESULT_TIMEOUT_S = 900.0
PAUSE_WITH_KILLS_S = 0.15
WORKERS_WITH_KILLS = 2  # a pool, so that one works while the other starts
# A killed worker's work waits for its lease; an environment that says otherwise wins.
SHORT_LEASES = {"BRAINQ_LEASE_S": "3", "BRAINQ_BEAT_S": "0.8", "BRAINQ_SWEEP_S": "0.3", "BRAINQ_RERING_S": "1.5"}

Tell = Callable[[RecordedSession], None]


@dataclass(slots=True)
class Report:
    """What a replay came to. `kills` counts killed workers by pool; `took_s` is without starting and checking."""

    checked: list[Checked] = field(default_factory=list[Checked])
    calls: Counter[str] = field(default_factory=Counter[str])
    kills: Counter[str] = field(default_factory=Counter[str])
    rescued: int = 0
    turns: int = 0
    took_s: float = 0.0

    @property
    def mismatched(self) -> list[Checked]:
        return [checked for checked in self.checked if checked.problems]

    @property
    def unknown(self) -> int:
        return sum(checked.unknown for checked in self.checked)

    @property
    def doubled(self) -> int:
        return sum(checked.doubled for checked in self.checked)

    @property
    def repeats(self) -> int:
        return sum(checked.repeats for checked in self.checked)


@dataclass(frozen=True, slots=True)
class Stage:
    """Running pools, and all a replay needs of them."""

    client: Client
    fleet: LocalFleet
    database: AirlineDatabase
    options: Options


@contextmanager
def running_stage(
    recorded: Path,
    *,
    idempotent: bool = True,
    kills: bool = False,
    pause_s: float | None = None,
    wire: Wire | None = None,
    redis_url: str = "",
) -> Generator[Stage]:
    """Redis, SQL, the airline's database and workers of each pool, in a directory that goes away afterwards.

    kills     workers are going to be killed: each pool has two, leases are short, and writes take `pause_s`
    wire      the model server that holds the recorded replies; None: they are read from the file
    redis_url   the Redis to use; empty: one is started
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bq-air-")))
        pause_s = (PAUSE_WITH_KILLS_S if kills else 0.0) if pause_s is None else pause_s
        options = Options(recorded, directory / "airline.db", idempotent, pause_s, wire)
        make_database(options.database)
        redis_url = redis_url or stack.enter_context(EmbeddedServer(directory / "redis", durable=False)).url
        environment = _environment(directory, redis_url, options, kills)
        settings = load_settings(
            app=environment["BRAINQ_APP"], redis_url=redis_url, sql_url=environment["BRAINQ_SQL_URL"]
        )
        client = stack.enter_context(Client(settings, make_brain(options)))
        wiring_of(client).warm_up()
        database = AirlineDatabase(options.database)
        stack.callback(database.close)
        count = WORKERS_WITH_KILLS if kills else 1
        fleet = LocalFleet(directory / "workers", environment, workers={str(pool): count for pool in POOLS})
        stack.enter_context(fleet)
        yield Stage(client, fleet, database, options)


def replay(
    stage: Stage,
    sessions: Sequence[RecordedSession],
    *,
    in_flight: int = 64,
    kill_every_s: float | None = None,
    tell: Tell | None = None,
) -> Report:
    """Play `sessions`, at most `in_flight` at once, and check each of them.

    kill_every_s   kill a worker of each pool that often, seconds; None: nobody is killed
    tell           called with each session that was played, from any thread
    """
    report = Report()
    started = time.monotonic()
    with ExitStack() as stack:
        killer = None if kill_every_s is None else stack.enter_context(Killer(stage.fleet, kill_every_s))
        played = _play_all(stage.client, sessions, in_flight, tell)
        report.took_s = time.monotonic() - started
    report.kills = Counter() if killer is None else killer.kills
    for one in played:
        report.turns += len(one.results)
        report.rescued += sum(trace.attempt > 1 for trace in one.traces)
        report.calls.update(f"{trace.effect} {trace.status}" for trace in one.traces)
        report.checked.append(check(one, stage.database, idempotent=stage.options.idempotent))
    return report


def _play_all(client: Client, sessions: Sequence[RecordedSession], in_flight: int, tell: Tell | None) -> list[Played]:
    stopping = threading.Event()

    def play(session: RecordedSession) -> Played:
        if stopping.is_set():
            raise InterruptedError(f"{session.session_id} was not begun: an earlier one could not be played")
        try:
            played = _play(client, session)
        except BaseException:
            stopping.set()
            raise
        if tell is not None:
            tell(session)
        return played

    with ThreadPoolExecutor(in_flight, thread_name_prefix="play") as threads:
        return list(threads.map(play, sessions))


def _play(client: Client, session: RecordedSession) -> Played:
    """All turns are queued at once: it is brainq that runs them one after another."""
    handles = [
        client.submit(session.session_id, turn.user, turn_id=session.turn_id(number))
        for number, turn in enumerate(session.turns, 1)
    ]
    results = tuple(handle.result(RESULT_TIMEOUT_S) for handle in handles)
    snapshots = [handle.snapshot() for handle in handles]
    traces = tuple(trace for snapshot in snapshots if snapshot is not None for trace in snapshot.trace)
    return Played(session, results, traces)


def _environment(directory: Path, redis_url: str, options: Options, kills: bool) -> dict[str, str]:
    leases = {name: value for name, value in SHORT_LEASES.items() if kills and name not in os.environ}
    return {
        **leases,
        **options.environment(),
        "BRAINQ_APP": "examples.airline.agent:brain",
        "BRAINQ_REDIS_URL": redis_url,
        "BRAINQ_SQL_URL": f"sqlite:///{directory / 'brainq.db'}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
