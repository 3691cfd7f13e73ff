"""The event loop's work for kombu's Redis transport: it registers only sockets that changed, and acks from task threads
wake it only while it waits for a free place."""

from __future__ import annotations

import time
from typing import Any

from kombu.transport import virtual

from brainq.runtime.processes.pool_threads import POOL_THREADS


def _wake_only() -> None: ...


class PollingMixin:
    """The work of kombu's Redis transports in each round of the event loop, limited to what changed.

    Mix it in first.
    """

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

    Without ack emulation an ack sends nothing to Redis: it frees a thread of this worker. Celery passes every ack to
    the event loop, which wakes for it. Here the loop is woken only while it waits for a thread.

    pool: the pool whose queues this channel reads. The channel takes a thread of the pool for each message. Without a
        pool, kombu's prefetch count is the limit.
    """

    is_local = True

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self.pool = ""
        self.later: dict[str, tuple[str, float]] = {}
        self._holders: set[str] = set()

    def note_later(self, delivery_tag: str, key: str) -> None:
        """Note that this message may wait for others: see `runtime.processes.later_threads`."""
        self.later[delivery_tag] = key, time.monotonic()

    @property
    def threads(self) -> int:
        """How many messages may be in work at once, or 0 if there is no limit."""
        return POOL_THREADS.limits.get(self.pool, 0) if self.pool else self.prefetch_count

    def can_consume(self) -> bool:
        """Return whether the event loop may request more messages from Redis.

        A reply that is under way may hold messages already, so it is read even if continued work has taken the last
        thread meanwhile. What has no thread goes back to its queue.
        """
        if not self.pool:
            return super().can_consume()
        return bool(self.channel._in_poll) or POOL_THREADS.has_free(self.pool, self._wake)

    def can_consume_max_estimate(self) -> int | None:
        return POOL_THREADS.free(self.pool) if self.pool else super().can_consume_max_estimate()

    def try_take(self) -> bool:
        """Take a thread of the pool for the next message, and return whether there was one."""
        return not self.pool or POOL_THREADS.try_take(self.pool)

    def hold(self, delivery_tag: str) -> None:
        """Note that the taken thread belongs to this message."""
        self._holders.add(delivery_tag)

    def let_go(self, delivery_tag: str) -> None:
        """Give back the thread of a message. Idempotent."""
        try:
            self._holders.remove(delivery_tag)  # one atomic step: only one caller gives it back
        except KeyError:
            return
        self.give_back()

    def give_back(self) -> None:
        if self.pool:
            POOL_THREADS.give_back(self.pool)

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.later.pop(delivery_tag, None)
        self.let_go(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().reject(delivery_tag, requeue=requeue)
        self.later.pop(delivery_tag, None)
        self.let_go(delivery_tag)

    def _wake(self) -> None:
        transport = self.channel.connection
        if transport is not None:  # otherwise the channel is closed, and the next one has its own alarm
            transport.wake()
