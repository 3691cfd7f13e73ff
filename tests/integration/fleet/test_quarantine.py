"""Suspects in quarantine: who shares a process with one that kills goes on at once, and is asked again at most once.

Its processes are threads here, so that many cost nothing; what Redis holds of it is real. With real ones:
`tests/acceptance/promises/test_p16_many.py`.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from brainq import Brain, ScriptedProvider
from brainq.adapters.celery.names import TURNS_QUEUE
from brainq.app.wiring import Wiring
from brainq.app.wiring import quarantine as alone_module
from brainq.app.wiring.machines import make_coordinator
from brainq.client.handle import TurnHandle
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import says
from brainq.engine.turn.coordinator import ANY_LOSSES
from brainq.runtime.processes.child import FrameLostError
from brainq.runtime.processes.quarantine_pool import FILL_FIRST
from tests.support.pump import Pump

INNOCENTS = 20


class Model:
    """Innocents' replies come once a process has died; `asked` is how often each turn's was asked for."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.death = threading.Event()

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.asked[request.turn_id] += 1
        assert self.death.wait(60)
        return says("well")


class ThreadProcess:
    """Works on turns as a process in quarantine does, and dies of the poison once all its others were asked for."""

    numbers = itertools.count(1)

    def __init__(self, wiring: Wiring, model: Model, on_gone: Callable[[str], object]) -> None:
        self.pid = next(self.numbers)
        self.name = f"h-{self.pid}"
        self.is_alive = True
        self._model = model
        self._on_gone = on_gone
        self._wiring = Wiring(wiring.settings, wiring.brains, owner=self.name)
        self._coordinator = make_coordinator(self._wiring, quarantine=None)
        self._open: dict[str, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def wait_ready(self) -> None: ...

    def request(self, what: dict[str, Any]) -> Future[dict[str, Any]]:
        answer = Future[dict[str, Any]]()
        with self._lock:
            if not self.is_alive:
                answer.set_exception(FrameLostError("dead"))
                return answer
            self._open[what["turn"][1]] = answer
        threading.Thread(target=self._work, args=what["turn"]).start()
        return answer

    def kill(self) -> None:
        """Its threads go on, as those of a frozen process that thaws: what they still do is refused."""
        self.is_alive = False

    def close(self) -> None:
        self._wiring.close()

    def _work(self, session_id: str, turn_id: str, fence: int) -> None:
        if session_id == "poison" and not self._is_quarantined(session_id, turn_id):
            self._wiring.state.turns.claim(session_id, turn_id, fence, f"1@{self.name}", ANY_LOSSES)
            self._die()
            return
        did = self._coordinator.advance(session_id, turn_id, fence)
        with self._lock:
            answer = self._open.pop(turn_id, None)
        if answer is not None:  # of a dead one nobody hears
            answer.set_result({"did": did})

    def _is_quarantined(self, session_id: str, turn_id: str) -> bool:
        key = self._wiring.state.keys.turn(session_id, turn_id)
        return self._wiring.state.redis.hget(key, "died_alone") == "2"

    def _die(self) -> None:
        self._on_gone("was killed by signal 9")
        with self._lock:
            self.is_alive = False
            answers, self._open = list(self._open.values()), {}
        self._model.death.set()
        for answer in answers:
            answer.set_exception(FrameLostError("dead"))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def pump(pumps: Callable[..., Pump], model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pump]:
    started: list[ThreadProcess] = []
    pump = pumps(Brain("calm", ScriptedProvider(rules=model)), lease_s=10.0, beat_s=3.0)

    def start(_settings: object, _guard: object, on_gone: Callable[[str], object]) -> ThreadProcess:
        started.append(ThreadProcess(pump.wiring, model, on_gone))
        return started[-1]

    monkeypatch.setattr(alone_module, "ChildProcess", start)
    yield pump
    for process in started:
        process.close()


def suspects(pump: Pump, *sessions: str) -> list[TurnHandle]:
    handles = [pump.submit(session, "hi") for session in sessions]
    for handle in handles:
        key = pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)
        pump.wiring.state.redis.hset(key, "lost_attempts", "2")
    return handles


def answer_all(pump: Pump) -> None:
    """Each doorbell of a turn in a thread of its own, those that are rung meanwhile, too; nothing is swept."""
    with ThreadPoolExecutor(INNOCENTS * 2) as threads:
        open_: set[Future[str]] = set()
        while (bell := pump.take(TURNS_QUEUE)) is not None or open_:
            if bell is not None:
                open_.add(threads.submit(pump.answer, bell))
            done, open_ = wait(open_, timeout=0.01)
            for each in done:
                each.result()


def test_many_beside_one_that_kills_are_asked_again_at_once_and_at_most_once(pump: Pump, model: Model) -> None:
    *innocents, poison = suspects(pump, *(f"calm{n}" for n in range(INNOCENTS)), "poison")
    answer_all(pump)
    pump.drain()
    results = [handle.result(timeout_s=10) for handle in innocents]
    assert [(result.ending, result.text) for result in results] == [(Ending.COMPLETED, "well")] * INNOCENTS
    end = poison.result(timeout_s=10)
    assert (end.ending, end.stop_reason) == (Ending.FAILED, StopReason.LOST)
    assert "nothing else, was killed by signal 9, 2 times" in (end.error or "")
    asked = [model.asked[handle.turn_id] for handle in innocents]
    assert max(asked) <= 2
    assert sum(asked) - INNOCENTS < FILL_FIRST, "only those that were in one process with it"
