"""The event loop's work for kombu's Redis transport: it registers only sockets that changed, and acks from task threads
wake it only while it waits for a free place."""

from __future__ import annotations

import time
from typing import Any

from kombu.transport import virtual


def _wake_only() -> None: ...


class PollingMixin:
    """The work of kombu's Redis transports in each round of the event loop, limited to what changed. Mix it in
    first."""

    _hub: Any = None

    def register_with_event_loop(self: Any, connection: Any, loop: Any) -> None:
        """Register like kombu, but without its step that registers every socket again before each poll."""
        others = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)  # type: ignore[misc]
        self._hub = loop
        cycle, readers, on_readable = self.cycle, loop.readers, self.on_readable
        loop.on_tick.intersection_update(others)

        def on_poll_start() -> None:
            cycle.on_poll_start()
            for fd in cycle.fds:
                if fd not in readers:  # a closed socket is no longer among them
                    loop.add_reader(fd, on_readable, fd)

        loop.on_tick.add(on_poll_start)

    def wake(self) -> None:
        """Wake the event loop, so that it checks whether it may take more. Any thread may call this."""
        if self._hub is not None:
            self._hub.call_soon(_wake_only)


class ThreadSafeQoS(virtual.QoS):
    """kombu's count of unacknowledged messages, whose `ack` any thread may call.

    Without ack emulation an ack sends nothing to Redis: it frees a place in this worker. Celery passes every ack to the
    event loop, which wakes for it. Here the loop is woken only while it waits for a place.
    """

    is_local = True

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self._loop_waits = False
        self.later: dict[str, tuple[str, float]] = {}

    def note_later(self, delivery_tag: str, key: str) -> None:
        """Note that this message may wait for others: see `runtime.processes.later_threads`."""
        self.later[delivery_tag] = key, time.monotonic()

    def can_consume(self) -> bool:
        """Return whether the event loop may request more messages from Redis."""
        if super().can_consume():
            return True
        # Set before the second check: an ack between the two is seen by one of both threads.
        self._loop_waits = True
        return super().can_consume()

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.later.pop(delivery_tag, None)
        if self._loop_waits:
            self._loop_waits = False
            transport = self.channel.connection
            if transport is None:  # the channel is closed, and the next one has its own count
                return
            try:
                transport.wake()
            except BaseException:
                self._loop_waits = True  # it was not woken, so the next ack tries again
                raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().reject(delivery_tag, requeue=requeue)
        self.later.pop(delivery_tag, None)
