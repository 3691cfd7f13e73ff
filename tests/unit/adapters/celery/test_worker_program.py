"""How a worker's process ends, and how it comes back to a broker that was away."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

import pytest
from celery import signals
from celery.exceptions import WorkerShutdown, WorkerTerminate
from celery.worker import consumer as stock
from celery.worker import state
from kombu.utils import functional

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57 import consumer as ours
from brainq.adapters.celery.celery57.consumer import Consumer
from brainq.runtime.observe.logs import OutageLog
from brainq.runtime.settings.deployment import load_settings

# Whoever runs the tests as root in a container is told so.
pytestmark = pytest.mark.filterwarnings("ignore:.*superuser privileges:celery.exceptions.SecurityWarning")


def make_worker() -> Any:
    app: Any = make_app(load_settings(redis_url="redis://127.0.0.1:1/0"), names.PARALLEL_QUEUES)
    return app.Worker(quiet=True, loglevel="CRITICAL")


@pytest.mark.parametrize(
    ("raised", "stop", "terminate", "code"),
    [
        (WorkerTerminate(1), None, None, 1),
        (SystemExit(0), None, None, 1),
        (SystemExit(None), None, None, 1),
        (RuntimeError("a bug"), None, None, 1),
        (SystemExit(6), None, None, 6),
        (None, None, None, 1),
        (WorkerShutdown(0), 0, None, 0),
        (WorkerTerminate(True), None, True, None),
    ],
)
def test_what_ends_without_being_asked_has_failed(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException | None, stop: int | None, terminate: bool | None, code: int
) -> None:
    monkeypatch.setattr(state, "should_stop", stop)
    monkeypatch.setattr(state, "should_terminate", terminate)
    worker = make_worker()

    def start(_: object) -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(worker.blueprint, "start", start)
    worker.start()
    assert worker.exitcode == code


@pytest.mark.parametrize(("stop", "times"), [(None, 1), (0, 0)])
def test_a_worker_that_ends_by_itself_says_first_that_it_takes_nothing_more(
    monkeypatch: pytest.MonkeyPatch, stop: int | None, times: int
) -> None:
    heard: list[object] = []

    def hear(sender: object = None, **_: object) -> None:
        heard.append(sender)

    monkeypatch.setattr(state, "should_stop", stop)
    worker = make_worker()

    def end(*_: object, **__: object) -> None:
        heard.append("stop")

    monkeypatch.setattr(worker, "blueprint", SimpleNamespace(stop=end, join=bool))
    signals.worker_shutting_down.connect(hear)
    try:
        worker._shutdown(warm=True)
    finally:
        signals.worker_shutting_down.disconnect(hear)
    assert heard == [worker.hostname] * times + ["stop"]


def test_a_banner_that_cannot_be_written_stops_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    worker = make_worker()
    monkeypatch.setattr("builtins.print", full)
    worker.emit_banner()


def bare_consumer() -> Any:
    made: Any = Consumer.__new__(Consumer)
    made._connecting = OutageLog(ours.log, "connecting to the broker")
    return made


def test_a_broker_that_is_away_is_tried_twice_a_second_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    app: Any = make_app(load_settings(redis_url="redis://127.0.0.1:1/0"), names.PARALLEL_QUEUES)

    def give_up() -> None:
        if len(slept) >= 20:
            raise WorkerShutdown(0)

    monkeypatch.setattr(functional, "sleep", slept.append)
    monkeypatch.setattr(ours, "maybe_shutdown", give_up)
    with pytest.raises(WorkerShutdown):
        bare_consumer().ensure_connected(app.connection_for_read())
    assert set(slept) == {0.5}
    assert caplog.text.count("connecting to the broker failed") == 1


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError),
        (MemoryError(), ConnectionAbortedError),
        (RuntimeError("can't start new thread"), ConnectionAbortedError),
        (ConnectionResetError(), ConnectionResetError),
        (KeyError("a bug"), KeyError),
    ],
)
def test_a_shortage_is_a_lost_connection_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, seen: type[Exception]
) -> None:
    def start(*_: object) -> None:
        raise failure

    consumer = SimpleNamespace(is_connected=True)
    monkeypatch.setattr(stock.Consumer.Blueprint, "start", start)
    with pytest.raises(seen):
        Consumer.Blueprint().start(consumer)
    assert not consumer.is_connected
