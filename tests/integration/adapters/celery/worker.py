"""A brainq worker inside the test process, and what it heard."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, cast

from celery import Celery
from celery.contrib.testing.worker import start_worker
from kombu.messaging import Consumer as KombuConsumer
from pydantic import SecretStr

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import COORDINATOR_QUEUES, POISON_LIST, TURN_ADVANCE, TURNS_QUEUE, queue_key
from brainq.runtime.settings.deployment import Settings
from tests.support.server import RedisServer


def settings_for(url: str, **given: Any) -> Settings:
    return Settings(redis_url=SecretStr(url), **given)


class Heard:
    """The doorbells a test worker ran."""

    def __init__(self) -> None:
        self.bells: list[tuple[Any, ...]] = []
        self._lock = threading.Lock()

    def add(self, *args: Any) -> None:
        with self._lock:
            self.bells.append(args)


def listening_app(settings: Settings) -> tuple[Celery, Heard]:
    """An app that serves the turns queue and notes the arguments of every brainq.turn.advance."""
    app = make_app(settings, COORDINATOR_QUEUES)
    heard = Heard()
    app.task(heard.add, name=TURN_ADVANCE)
    return app, heard


@contextmanager
def running(app: Celery, concurrency: int | None = 4, loglevel: str = "CRITICAL") -> Generator[Any]:
    """A worker for the time of the block, which logs through the root logger at `loglevel`. One of several pools has
    the threads of its settings, and no `concurrency`."""
    root = logging.getLogger()
    level = root.level
    try:
        with cast("Any", start_worker)(
            app, pool=app.conf.worker_pool, concurrency=concurrency, perform_ping_check=False, loglevel=loglevel
        ) as worker:
            yield worker
    finally:
        root.setLevel(level)


def ring(server: RedisServer, settings: Settings, *items: str) -> None:
    """Push items on the turns queue, the first to be taken first."""
    server.command("LPUSH", queue_key(settings, TURNS_QUEUE), *items)


def quarantined(server: RedisServer, settings: Settings) -> list[dict[str, Any]]:
    """The notes of the poison list, oldest first."""
    notes = server.command("LRANGE", settings.prefix + POISON_LIST, "0", "-1")
    return [json.loads(note) for note in reversed(notes)]


class Events(dict[str, dict[str, Any]]):
    """The last event of each type; `all` has every one."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict[str, Any]] = []


@contextmanager
def watching(app: Celery) -> Generator[Events]:
    """What a monitor such as Flower receives during the block."""
    events = Events()
    listening, stopping = threading.Event(), threading.Event()

    def note(event: dict[str, Any]) -> None:
        events[event["type"]] = event
        events.all.append(event)

    def listen() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": note})
            # Not receiver.capture(): that one cannot tell when it has subscribed, and stops a second late.
            consumer = receiver.get_consumers(partial(KombuConsumer, receiver.channel), receiver.channel)[0]
            with consumer:
                while not stopping.is_set():
                    with suppress(TimeoutError):
                        connection.drain_events(timeout=0.05)
                    # The first drain has subscribed.
                    listening.set()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        assert listening.wait(60), "the event receiver did not start"
        yield events
    finally:
        stopping.set()
        thread.join(60)
