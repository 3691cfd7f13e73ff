"""What a worker's event loop does for kombu's Redis transport: it registers only sockets that changed, and
acks from tasks' threads wake it only when it waits for a place.
"""

from __future__ import annotations

import time
from typing import Any

from kombu.transport import virtual


def _wake_only() -> None: ...


class PollingMixin:
    """What kombu's Redis transports do in each turn of the event loop, and only what changed since the last; mixed in
    before them."""

    _hub: Any = None

    def register_with_event_loop(self: Any, connection: Any, loop: Any) -> None:
        """kombu's own, but for its step before each poll: that one registers every socket again, each time."""
        others = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)  # type: ignore[misc]
        self._hub = loop
        cycle, readers, on_readable = self.cycle, loop.readers, self.on_readable
        loop.on_tick.intersection_update(others)

        def on_poll_start() -> None:
            cycle.on_poll_start()
            for fd in cycle.fds:
                if fd not in readers:  # a socket that was closed is no longer among them
                    loop.add_reader(fd, on_readable, fd)

        loop.on_tick.add(on_poll_start)

    def wake(self) -> None:
        """Have the event loop look again whether it may take more; from any thread."""
        if self._hub is not None:
            self._hub.call_soon(_wake_only)


class ThreadSafeQoS(virtual.QoS):
    """kombu's count of unacknowledged messages, whose `ack` any thread may call.

    Without ack emulation an ack tells Redis nothing: it frees a place in this worker. Celery hands every ack to the
    event loop, which wakes for it; here the loop is woken only when it waits for a place.
    """

    is_local = True

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self._loop_waits = False
        self.later: dict[str, tuple[str, float]] = {}

    def note_later(self, delivery_tag: str, key: str) -> None:
        """This message may wait for others: see `processes.later_threads`."""
        self.later[delivery_tag] = key, time.monotonic()

    def can_consume(self) -> bool:
        """Asked by the event loop before it asks Redis for more."""
        if super().can_consume():
            return True
        # Said first, looked at again after: an ack between the two is seen by one of both threads.
        self._loop_waits = True
        return super().can_consume()

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.later.pop(delivery_tag, None)
        if self._loop_waits:
            self._loop_waits = False
            transport = self.channel.connection
            if transport is None:  # the channel is closed: the next one has a count of its own
                return
            try:
                transport.wake()
            except BaseException:
                self._loop_waits = True  # it was not woken: the next ack is to try
                raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().reject(delivery_tag, requeue=requeue)
        self.later.pop(delivery_tag, None)
