"""A brain in a test: whole turns in this process, on a clock that the test moves."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self, Unpack, cast

from brainq.app.local.worker import LocalWorker
from brainq.app.wiring import Wiring
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.client.handle import ENDED_OR_PARKED, TurnHandle
from brainq.client.local import alone_in_process
from brainq.client.options import SubmitOptions
from brainq.client.waiting import turn_parked_error
from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import new_turn_id
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.people import Receipt
from brainq.contracts.status import Awaits
from brainq.contracts.turn import TurnResult
from brainq.engine.brain.brains import Brains, BrainsArgument, read_brains
from brainq.engine.models.scripted import Rules, ScriptedFailure, ScriptedProvider
from brainq.errors import InvalidInput, SetupError
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.settings.deployment import load_settings
from brainq.testing.clock import MovedClock, move
from brainq.testing.moments import At, Killed, Moment, Moments, WatchedExecutor
from brainq.testing.servers import follow_clock, test_servers

Script = Sequence[ModelReply | ScriptedFailure] | Rules | ScriptedProvider
SWEEP_S = 0.2
TURN_S = 60.0  # of real time, for a turn of a test
LOOK_S = 0.001
IDLE_S = 0.05  # after which what is not finished waits for its time to come: a step that is tried again
JUMPS = 50  # of a move of the clock, at most, beside those to schedules
_WAITS = frozenset(
    {Awaits.SESSION, Awaits.ROOM, Awaits.BRAIN, Awaits.PAUSED, Awaits.PEOPLE, Awaits.OUTSIDE, Awaits.CLIENT}
)


class Run:
    """A run of one brain, or several. `testing.run` returns one; use it as a context manager.

    client: every verb of Client. `turn` and `start` are shorter.
    """

    def __init__(
        self, brain: BrainsArgument, script: Script | None, results: Mapping[str, Sequence[Any]], settings: Any
    ) -> None:
        self._providers: dict[str, ScriptedProvider] = {}
        self._script = None if script is None else _provider(script)
        self._brains = self._scripted(read_brains(brain))
        self._given = settings
        self._clock = MovedClock()
        self._moments = Moments(results)
        self._released = threading.Event()
        self._failures: list[BaseException] = []
        self._retired: list[Wiring] = []
        self._handles: list[TurnHandle] = []
        self._names = itertools.count(1)
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            exits.enter_context(alone_in_process())
            servers = test_servers()
            servers.empty()
            own = {"redis_url": servers.redis_url, "sql_url": servers.sql_url, "data_dir": servers.directory}
            alone = {"broker_url": None, "cells": "", "cell": "", "doorbell": "transactional"}
            self._settings = load_settings(**{"sweep_s": SWEEP_S, **self._given, **own, **alone})
            self.client = exits.enter_context(Client(self._settings, self._brains))
            follow_clock(wiring_of(self.client), self._clock)
            self._worker = self._begin(wiring_of(self.client))
            exits.callback(self._stop)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._exits.close()
        if kind is None:
            for failure in self._failures:
                raise failure
            for moment in self._moments.planned:
                raise AssertionError(f"{moment.tool} never came to its {moment.at}: {moment.what} did not happen")

    def start(
        self, message: str, *, session: str = "test", script: Script | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnHandle:
        """Submit a turn, and wait until it has ended or waits for a person or an outside result.

        script: the model's replies in this turn, if they are not those of the run.
        options: as for `Client.submit`.
        """
        turn_id = options.setdefault("turn_id", new_turn_id())
        if script is not None:
            self._providers[cast(str, turn_id)] = _provider(script)
        self._handles.append(self.client.submit(session, message, **options))
        self.settle()
        return self._handles[-1]

    def turn(
        self, message: str, *, session: str = "test", script: Script | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnResult:
        """Run a turn to its result, with every step after it. Takes what `start` does.

        Raises TurnParked if it waits for a person or for a client tool: use `start`, then `approve` or `complete`.
        """
        self.start(message, session=session, script=script, **options)
        return self.result()

    def result(self) -> TurnResult:
        """Return the result of the newest turn. Raises TurnParked if it waits for a person or an outside result."""
        handle = self.handle
        self.settle()
        if handle.wait(ENDED_OR_PARKED, TURN_S) == "parked":
            raise turn_parked_error(handle.turn_id, handle.session_id, handle.snapshot(), handle.approvals())
        return handle.result(TURN_S)

    @property
    def handle(self) -> TurnHandle:
        """The handle of the newest turn."""
        if not self._handles:
            raise SetupError("no turn has begun; call turn(message) or start(message) first")
        return self._handles[-1]

    @property
    def calls(self) -> tuple[TurnCall, ...]:
        """The calls of the newest turn, in the model's order."""
        return self.handle.calls()

    @property
    def events(self) -> tuple[TurnEvent, ...]:
        """The events of the newest turn so far."""
        return self.handle.events_so_far()

    def approve(self, *, by: str = "") -> None:
        """Approve every call of the newest turn that waits for it, and let the turn continue."""
        for approval in self._pending():
            self.client.approve(approval, by=by)
        self.settle()

    def deny(self, reason: str = "", *, by: str = "") -> None:
        """Deny every call of the newest turn that waits for approval, and let the turn continue."""
        for approval in self._pending():
            self.client.deny(approval, reason, by=by)
        self.settle()

    def steer(self, text: str, *, during: str = "") -> Receipt | None:
        """Send input into the newest turn: now, or when the next call of the tool `during` begins."""
        if not during:
            receipt = self.handle.steer(text)
            self.settle()
            return receipt
        self._plan(during, "start", lambda: self.handle.steer(text), "steering")
        return None

    def complete(self, result: Any = None, *, error: str = "") -> None:
        """Give the result, or the error, of the newest turn's first call that waits for one from outside or from a
        client tool, and let the turn continue."""
        waiting = [call for call in self.calls if call.park in ("outside", "client")]
        if not waiting:
            raise SetupError("no call of the newest turn waits for a result from outside")
        call, handle = waiting[0], self.handle
        token = self._moments.tokens.get(call.id)
        if token is None:
            _ = handle.give_error(call.call_id, error) if error else handle.give_result(call.call_id, result)
        else:
            _ = self.client.fail_call(token, error) if error else self.client.complete_call(token, result)
        self.settle()

    def kill(self, during: str, *, at: At = "start") -> None:
        """Kill the worker that runs the next call of the tool `during`. Another one takes its place.

        at: `start`, before the tool's function has run, or `end`, after it has: its result is lost.
        """
        self._plan(during, at, self._die, "a kill")

    def advance(self, *, days: float = 0.0, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        """Move the clock forward, and do what becomes due: deadlines, approvals, schedules, retries."""
        left_ms = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
        if left_ms <= 0:
            raise InvalidInput("advance", "the clock moves forward only: advance(hours=3)")
        least_ms = -(-left_ms // JUMPS)
        self.settle()
        while left_ms > 0:
            jump_ms = self._next_jump_ms(left_ms, least_ms)
            left_ms -= jump_ms
            self._move(jump_ms)
            self.settle()

    def settle(self) -> None:
        """Wait until nothing can go on before the clock moves, or a person decides. Other verbs do so by themselves."""
        end, idle_since = time.monotonic() + TURN_S, time.monotonic()
        while True:
            if self._failures:
                raise self._failures.pop(0)
            awaits = self._open_turns()
            if not self._worker.is_idle:
                idle_since = time.monotonic()
            elif awaits <= _WAITS or (time.monotonic() - idle_since > IDLE_S and awaits <= _WAITS | {Awaits.FINALIZER}):
                return
            if time.monotonic() > end:
                raise AssertionError(f"turns did not come to rest in {TURN_S:g} s; they wait for {sorted(awaits)}")
            self._released.wait(LOOK_S)

    def _pending(self) -> list[str]:
        found = [approval.id for approval in self.handle.approvals() if approval.state == "pending"]
        if not found:
            raise SetupError("no call of the newest turn waits for an approval")
        return found

    def _plan(self, tool: str, at: At, act: Callable[[], object], what: str) -> None:
        if all(tool not in brain.tools for brain in self._brains):
            raise InvalidInput("during", f"the brain has no tool {tool!r}")
        self._moments.planned.append(Moment(tool, at, act, what))

    def _open_turns(self) -> frozenset[str]:
        """Return whom turns wait for that are not finished."""
        state = self._worker.wiring.state
        members = cast("list[str]", state.redis.zrange(state.keys.index, 0, -1))
        turns = [state.keys.turn(*member.split(" ")) for member in members]
        found = state.redis.many([("HGET", key, "awaits") for key in turns]) if turns else []
        return frozenset(word for word in found if word is not None and word != Awaits.NOBODY)

    def _next_jump_ms(self, left_ms: int, least_ms: int) -> int:
        """Return how far of `left_ms` it is to the next schedule, or to the next look at a turn or try of a job, for
        which it is `least_ms`."""
        state, store, now_ms = self._worker.wiring.state, self._worker.wiring.store, self._clock.now_ms()
        looks = cast(
            "list[tuple[str, float]]",
            state.redis.zrangebyscore(state.keys.index, now_ms, "+inf", start=0, num=1, withscores=True),
        )
        due = [max(least_ms, int(score) - now_ms + 1) for _, score in looks]
        for schedule in self.client.schedules():
            if schedule.next_at is not None and not schedule.paused:
                due.append(max(1, round(schedule.next_at.timestamp() * 1000) - now_ms + 1))
        if any(jobs.due(-left_ms / 1000, 1) for jobs in (store.step_jobs, store.judgements)):
            due.append(least_ms)
        return min([left_ms, *due])

    def _move(self, by_ms: int) -> None:
        wiring = self._worker.wiring
        move(wiring.state.redis, self._clock, by_ms)
        wiring.sweeper.sweep()
        wiring.sweeper.start_due_work()

    def _scripted(self, brains: Brains) -> Brains:
        """Return the brains with the script in place of their models."""
        if self._script is None:
            return brains
        scripted = {brain.name: copy.copy(brain) for brain in brains}
        model = ScriptedProvider(rules=self._reply, auxiliary=self._reply)
        for brain in scripted.values():
            brain.model, brain.auxiliary_model, brain.for_step = model, None, None
        return Brains(scripted, keep_names=brains.keep_names)

    def _reply(self, request: ModelRequest) -> ModelReply | ScriptedFailure:
        provider = self._providers.get(request.turn_id, self._script)
        assert provider is not None
        return provider.answer(request)

    def _begin(self, wiring: Wiring) -> LocalWorker:
        runner: Any = wiring.runner
        runner.executor = WatchedExecutor(self._moments)
        worker = LocalWorker(wiring)
        worker.begin()
        return worker

    def _die(self) -> None:
        """Kill the worker of this thread's call. The call keeps the thread until the run is over."""
        start_thread("brainq-kill", self._replace_worker)
        self._released.wait()
        raise Killed

    def _replace_worker(self) -> None:
        try:
            dead = self._worker.wiring
            self._worker.kill()
            wiring = Wiring(self._settings, self._brains)
            self._retired.append(wiring)
            follow_clock(wiring, self._clock)
            wiring.state.sweeper.lapse(dead.owner)
            move(
                wiring.state.redis, self._clock, round(self._settings.beat_s * 1000) + 1
            )  # a begun write may live as long
            self._worker = self._begin(wiring)
        except BaseException as failure:
            self._failures.append(failure)

    def _stop(self) -> None:
        self._worker.close(TURN_S)
        self._released.set()
        for wiring in self._retired:
            wiring.close()


def _provider(script: Script) -> ScriptedProvider:
    if isinstance(script, ScriptedProvider):
        return script
    return ScriptedProvider(rules=script) if callable(script) else ScriptedProvider(script)


def run(
    brain: BrainsArgument,
    script: Script | None = None,
    *,
    results: Mapping[str, Sequence[Any]] | None = None,
    **settings: Any,
) -> Run:
    """Run a brain in this process, for a test.

        with testing.run(brain, [calls(("find", {"order": "A1"})), says("120.")]) as t:
            assert t.turn("What did A1 cost?").text == "120."
            assert t.calls[0].status == "completed"

    Each run has an empty Redis and an empty SQLite; both are started once a process. A turn takes some ten
    milliseconds, and nothing sleeps: the test moves the clock.

    script: the model's replies, step by step; a function of ModelRequest; or a ScriptedProvider. Without it the brain
        asks its own model.
    results: by tool, or by call id (`c1-0`), what calls return in turn, in place of running. An Exception is raised.
    settings: those of a deployment that the brain needs, such as `budgets="tenant 1.00/day"`.

    Raises AlreadyRuns if this process has a run, or a local client, already.
    """
    return Run(brain, script, results or {}, settings)
