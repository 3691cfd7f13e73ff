"""The consumer of task messages, with a channel for each pool of the worker.

A channel takes messages only while its pool has a free thread. So a pool whose threads are all busy leaves its messages
to other workers, and delays no other pool of this one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kombu.messaging import Consumer

from brainq.adapters.celery.celery57.event_loop import ThreadSafeQoS
from brainq.adapters.celery.names import pool_of


class PoolConsumer(Consumer):
    """kombu's consumer of queues, one channel for each pool, and pools that can be paused one by one."""

    def revive(self, channel: Any) -> None:
        """Use this channel for the queues of the first pool, and further ones of its connection for the others."""
        super().revive(channel)
        self._channels: dict[str, Any] = {}
        self._queues: dict[str, Any]
        for name, queue in list(self._queues.items()):
            self._queues[name] = queue(self._channel_of(pool_of(name)))

    def _channel_of(self, pool: str) -> Any:
        if pool not in self._channels:
            first: Any = self.channel
            channel: Any = first.connection.client.channel() if self._channels else first
            if isinstance(channel.qos, ThreadSafeQoS):  # elsewhere the broker counts, by the prefetch count
                channel.qos.pool = pool
            self._channels[pool] = channel
        return self._channels[pool]

    @property
    def consumed_pools(self) -> frozenset[str]:
        """The pools whose queues are consumed now."""
        return frozenset(map(pool_of, list(self._active_tags)))

    def consume_only(self, pools: Collection[str]) -> None:
        """Consume the queues of these pools, and no others."""
        for name in list(self._active_tags):
            if pool_of(name) not in pools:
                self._cancel(name)
        for name, queue in self._queues.items():
            if pool_of(name) in pools:
                self._basic_consume(queue)

    def cancel(self) -> None:
        for name in list(self._active_tags):
            self._cancel(name)

    close = cancel

    def return_requested(self) -> None:
        """Return messages that arrive for requests made before `cancel`, to their queues. It takes a second at most."""
        for channel in self._channels.values():
            if isinstance(channel.qos, ThreadSafeQoS):
                channel.return_requested()

    def _cancel(self, name: str) -> None:
        self._active_queue_no_ack.pop(name, None)
        self._channels[pool_of(name)].basic_cancel(self._active_tags.pop(name))
