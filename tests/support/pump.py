"""Whole turns in one process: doorbells are taken from the queues' lists and answered one after another.

Nothing runs in between, so a test can stop anywhere, ring a doorbell twice, lose one, or let a second process
(another `Pump` on the same servers) answer it. Leases are short: a lapsed one costs a test a third of a second.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from brainq.adapters.celery import names
from brainq.adapters.sql.store import Store
from brainq.app.wiring import Wiring
from brainq.app.wiring.visits import Visits
from brainq.client.client import Client
from brainq.client.handle import TurnHandle
from brainq.contracts.claim import CallClaim, Opened, TurnClaim
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnResult
from brainq.engine.brain.brains import BrainsArgument
from brainq.runtime.processes.pool_threads import NO_POOLS, PoolThreads
from brainq.runtime.settings.deployment import Settings, load_settings
from tests.support.stand_in import stand_in

QUICK: dict[str, Any] = {"lease_s": 0.3, "beat_s": 0.1, "sweep_s": 0.02, "rering_s": 0.1, "result_after_failing_s": 0.3}

MOST_BELLS = 5_000  # of one drain: a test has far fewer

_making = threading.Lock()
_template: list[Path] = []


@dataclass(frozen=True, slots=True)
class Bell:
    """A doorbell as it stood on its queue."""

    queue: str
    task: str
    task_id: str
    args: tuple[Any, ...]


def sqlite_url(directory: Path) -> str:
    """The url of a fresh SQLite database with brainq's tables: a copy, because migrating takes long."""
    with _making:
        if not _template:
            made = Path(tempfile.mkdtemp(prefix="bq-sql-")) / "template.db"
            Store.open(f"sqlite:///{made}").close()
            _template.append(made)
    path = directory / "brainq.db"
    shutil.copy(_template[0], path)
    return f"sqlite:///{path}"


class Pump:
    """One process's machines, driven by hand. `bells` is every doorbell it answered, with what was done."""

    def __init__(
        self,
        brain: BrainsArgument,
        redis_url: str,
        sql_url: str,
        *,
        owner: str = "pump",
        serves: Iterable[Effect] = Effect,
        threads: Mapping[str, int] = NO_POOLS,
        **settings: Any,
    ) -> None:
        """`threads`: of each pool, in a process that continues with what its work opens."""
        given = {**QUICK, "redis_url": redis_url, "sql_url": sql_url, **settings}
        self.settings: Settings = load_settings(**given)
        self.client = Client(self.settings, brain)
        self.wiring = Wiring(self.settings, brain, owner=owner, serves=serves)
        self.threads = PoolThreads(threads)
        self.wiring.__dict__["visits"] = Visits(self.wiring, self.threads, visit_s=3600.0)
        self.bells: list[tuple[Bell, str]] = []
        self._began: list[int] = []

    def submit(self, session_id: str, message: str, **options: Any) -> TurnHandle:
        return self.client.submit(session_id, message, **options)

    def waiting(self) -> list[Bell]:
        """The doorbells on all queues, the next one first; they stay there."""
        lists = {name: self._list(name) for name in names.ALL_QUEUES}
        return [_bell(queue, text) for queue, texts in lists.items() for text in reversed(texts)]

    def take(self, *queues: str) -> Bell | None:
        """Pop the next doorbell of `queues` (by default of any) without answering it."""
        for queue in queues or names.ALL_QUEUES:
            for key in self._keys(queue):
                text: Any = self.wiring.state.redis.rpop(key)
                if text:
                    return _bell(queue, text)
        return None

    def answer(self, bell: Bell) -> str:
        """Do what a worker does with a doorbell; the word says what was done."""
        match bell.task:
            case names.TURN_ADVANCE:
                answer = partial(self.wiring.visits.advance, *bell.args, stand_in(self))
            case names.CALL_RUN:
                answer = partial(self.wiring.visits.run_call, *bell.args, stand_in(self))
            case names.FINALIZE_STEP:
                answer = partial(self.wiring.finalizer.run, *bell.args, stand_in(self))
            case names.JUDGE_RUN:
                answer = partial(self.wiring.judge_runner.run, *bell.args)
            case _:
                raise AssertionError(f"nobody answers {bell.task}")
        at = len(self.bells)
        word = answer()
        self.bells.insert(at, (bell, word))
        return word

    def began(self, claim: Opened) -> None:
        """Fits `runtime.observe.work_events.WorkEvents`."""
        self._began.append(len(self.bells))

    def ended(self, claim: Opened, did: str, took_s: float) -> None:
        """Work that needed no doorbell stands among that which did, in the order it began."""
        self.bells.insert(self._began.pop(), (_unrung(claim), did))

    def ring_each_step(self) -> None:
        """The finalizer takes no step without a doorbell, so that a test can stop between any two."""
        finalizer: Any = self.wiring.finalizer
        finalizer.visit_s = 0.0

    def drain(self, *queues: str) -> int:
        """Answer doorbells until the queues are empty; how many that were. AssertionError when they never are."""
        count = 0
        while bell := self.take(*queues):
            self.answer(bell)
            count += 1
            assert count < MOST_BELLS, f"doorbells ring without an end: {bell}"
        return count

    def sweep(self) -> None:
        """One sweep that looks at every turn, due or not."""
        index = self.wiring.state.keys.index
        client: Any = self.wiring.state.redis
        for member in client.zrange(index, 0, -1):
            client.zadd(index, {member: 0}, xx=True)
        self.wiring.sweeper.sweep()

    def sweep_part(self, name: str) -> None:
        """One part of the round that compares SQL with Redis."""
        (part,) = (part for part in self.wiring.sweeper.comparisons if part.name == name)
        part.run(self.wiring.state.sweeper.epoch())

    def finish(self, handle: TurnHandle, timeout_s: float = 60.0) -> TurnResult:
        """Drain and sweep until the turn has its result and its chain is finished."""
        self.settle(handle, timeout_s)
        return handle.result(timeout_s=1)

    def settle(self, handle: TurnHandle, timeout_s: float = 60.0) -> None:
        """Drain, sweep and try late steps until nobody is to act on the turn any more."""
        end = time.monotonic() + timeout_s
        while True:
            if not self.drain():
                snapshot = handle.snapshot()
                jobs = self.wiring.store.step_jobs
                is_over = snapshot is not None and snapshot.awaits == "nobody"
                if is_over and not jobs.steps_of(handle.turn_id):
                    return
                for ids in jobs.due(0.0, MOST_BELLS):
                    self.answer(Bell(names.FINALIZE_QUEUE, names.FINALIZE_STEP, "", ids))
                self.sweep()
                threading.Event().wait(0.02)
            if time.monotonic() > end:
                raise AssertionError(f"the turn did not finish in {timeout_s:g} s: {handle.snapshot()}")

    def close(self) -> None:
        self.client.close()
        self.wiring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _list(self, queue: str) -> list[str]:
        client: Any = self.wiring.state.redis
        return [text for key in reversed(self._keys(queue)) for text in client.lrange(key, 0, -1)]

    def _keys(self, queue: str) -> list[str]:
        """The lists of a queue, in the order workers read them: what can wait has a list of its own."""
        return [names.queue_key(self.settings, queue), names.later_key(self.settings, queue)]


def _unrung(claim: Opened) -> Bell:
    """Return the doorbell that was not needed for this work."""
    turn = (claim.session_id, claim.turn_id)
    if isinstance(claim, TurnClaim):
        return Bell(names.TURNS_QUEUE, names.TURN_ADVANCE, "", (*turn, claim.fence - 1))
    if isinstance(claim, CallClaim):
        return Bell(names.tool_queue(claim.effect), names.CALL_RUN, "", (*turn, claim.call_id, claim.attempt))
    return Bell(names.FINALIZE_QUEUE, names.FINALIZE_STEP, "", (*turn, claim.step))


def _bell(queue: str, text: str) -> Bell:
    message = json.loads(text)
    args, _, _ = json.loads(message["body"])
    return Bell(queue, message["headers"]["task"], message["headers"]["id"], tuple(args))
