"""Stops over Redis: whoever runs something of a turn learns within a moment that the turn was cancelled.
Others may hear a channel of theirs on the same connection.

The cancel itself is a field of the turn's hash; a message only says "look". Nothing rests on one: what is published
while nobody listens is found by the beats, at the latest, and at once where `on_gap` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from brainq.state.listener import Heard, RedisListener

REASON = "cancelled"


class RedisStopSignals(RedisListener):
    """One listening thread a process, started by the first `watch`. Fits `ports.redis_calls.StopSignals`.

    url       of the Redis that holds the turns
    channel   what cancels are published on: `SESSION TURN`
    on_gap    called after each connect: what was published before was not heard
    """

    def __init__(self, url: str, channel: str, on_gap: Callable[[], None]) -> None:
        super().__init__(url, "stops")
        self._watching: dict[str, list[Heard]] = {}
        self.hear(channel, self._stop, on_gap)

    @contextmanager
    def watch(self, session_id: str, turn_id: str, callback: Heard) -> Generator[None]:
        """Call `callback` with a reason, from the listening thread, whenever a stop of the turn is published.

        It must return soon. It may be called once more just after the block was left.
        """
        name = f"{session_id} {turn_id}"
        with self._lock:
            self._watching.setdefault(name, []).append(callback)
        self.listen()
        try:
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
            self._notify(partial(callback, REASON))
