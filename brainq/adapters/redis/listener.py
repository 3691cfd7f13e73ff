"""A thread that listens to channels of one Redis or sentinel and reconnects as often as needed, and the stops of turns,
which are published on such a channel.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from brainq.adapters.redis.connection import driver_info, keepalive_options, make_pool
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.threads import KeptThread

log = logger("brainq.listener")

FIRST_BACKOFF_S = 0.05
MAX_BACKOFF_S = 0.5  # A process that does not listen for a second counts as dead.
READ_TIMEOUT_S = 1.0  # The time of one read, and the longest time that a closed listener continues.
SOCKET_TIMEOUT_S = 5.0  # The timeout of commands; a read has its own.
PING_AFTER_S = 5.0
DEAF_AFTER_S = 10.0  # If a ping gets no answer for this long, the connection is dead although it was not closed.

STOP_REASON = "cancelled"

Heard = Callable[[str], None]


class RedisListener:
    """A listener that subscribes at its first use.

    what   the subject, for the log and the thread's name
    """

    def __init__(self, url: str, what: str) -> None:
        self._url = url
        self._what = what
        self._channels: dict[str, Heard] = {}
        self._on_connect: dict[str, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._thread = KeptThread(f"brainq-{what}", self._run)
        self._closed = self._thread.stopping
        self._outage = OutageLog(log, f"listening for {what}")

    def hear(self, channel: str, heard: Heard, on_connect: Callable[[], None] | None = None) -> None:
        """Call `heard` with each message on a channel, and `on_connect` after each connect, because earlier messages
        were missed. Call this before the thread starts listening."""
        self._channels[channel] = heard
        if on_connect is not None:
            self._on_connect[channel] = on_connect

    def listen(self) -> None:
        """Start the listening thread unless it runs. Raises RuntimeError if the system refuses the thread."""
        self._thread.ensure()

    def close(self) -> None:
        """Stop listening. Does not wait: the thread hangs up within a second."""
        self._thread.stop()

    def _run(self, _stopping: threading.Event) -> None:
        client = _make_client(self._url, self._what)
        try:
            self._listen_on(client)
        finally:
            client.close()

    def _listen_on(self, client: redis.Redis) -> None:
        backoff_s = FIRST_BACKOFF_S
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                self._listen(client)
            except Exception as failure:
                if self._closed.is_set():
                    break
                # If a connection has lasted a while, the next failure begins with a short pause.
                backoff_s = FIRST_BACKOFF_S if time.monotonic() - began > MAX_BACKOFF_S else backoff_s
                self._outage.failed(failure)
                self._closed.wait(backoff_s)
                backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)

    def _listen(self, client: redis.Redis) -> None:
        """Listen until it is closed. Raises if the connection is lost."""
        with client.pubsub() as pubsub:
            pubsub.subscribe(*self._channels)
            heard, pinged = time.monotonic(), False
            while not self._closed.is_set():
                message: Any = pubsub.get_message(timeout=READ_TIMEOUT_S)
                if message is not None:
                    heard, pinged = time.monotonic(), False
                    self._take(message)
                silent_s = time.monotonic() - heard
                if silent_s > DEAF_AFTER_S:
                    raise TimeoutError("no answer to a ping")
                if silent_s > PING_AFTER_S and not pinged:
                    pubsub.ping("brainq")
                    pinged = True

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe" and message["data"] == len(self._channels):
            # Only now is it certain that messages are received.
            self._outage.worked()
            for callback in self._on_connect.values():
                self._notify(callback)
        elif message["type"] == "message":
            self._notify(partial(self._channels[message["channel"]], message["data"]))

    def _notify(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except BaseException as failure:  # a tool's own listener may raise SystemExit
            if not self._closed.is_set():  # Otherwise the process has already hung up and needs no report.
                log.error("what was heard could not be done", what=self._what, failure=failure)


class RedisStopSignals(RedisListener):
    """The stop signals of turns.

    A process that works on a turn learns within a moment that the turn was cancelled. The first `watch` starts the
    process's single listening thread, which may also listen to other channels.

    The cancel itself is a field of the turn's hash, and a message only means "look". Nothing depends on a message: what
    is published while the process does not listen is found by the heartbeats, and at once if `on_gap` triggers them.

    url       the URL of the Redis that has the turns
    channel   the channel on which cancels are published, as `SESSION TURN`
    on_gap    called after each connect, because earlier messages were missed
    """

    def __init__(self, url: str, channel: str, on_gap: Callable[[], None]) -> None:
        super().__init__(url, "stops")
        self._watching: dict[str, list[Heard]] = {}
        self.hear(channel, self._stop, on_gap)

    @contextmanager
    def watch(self, session_id: str, turn_id: str, callback: Heard) -> Generator[None]:
        """Call `callback` with a reason, from the listening thread, whenever a stop of the turn is published. It must
        return soon. It may be called once more just after the block was left."""
        name = f"{session_id} {turn_id}"
        with self._lock:
            self._watching.setdefault(name, []).append(callback)
        try:
            self.listen()
            yield
        finally:
            with self._lock:
                callbacks = self._watching[name]
                callbacks.remove(callback)
                if not callbacks:
                    del self._watching[name]

    def _stop(self, name: str) -> None:
        with self._lock:
            callbacks = list(self._watching.get(name, ()))
        for callback in callbacks:
            self._notify(partial(callback, STOP_REASON))


def _make_client(url: str, what: str) -> redis.Redis:
    # Do not use the factory of `connection.py`: its settings are for commands that are answered at once. Nothing is
    # repeated here either: after any failure this module reconnects and reports the gap.
    pool = make_pool(
        url,
        decode_responses=True,
        encoding_errors="replace",
        protocol=2,  # In protocol 3 the answer to a ping has another form.
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=5.0,
        health_check_interval=0,
        retry=Retry(NoBackoff(), 0),
        driver_info=driver_info(f"brainq-{what}"),
        **keepalive_options(url),
    )
    return redis.Redis(connection_pool=pool)
