# pyright: basic
"""kombu's Sentinel transports, which connect to the primary of one hash slot of a Redis Cluster."""

from __future__ import annotations

from typing import Any, cast

from kombu.transport import redis as kombu_redis

from brainq.adapters.celery.celery57.event_loop import PollingMixin
from brainq.adapters.celery.celery57.transport import PrimaryConnection, SentinelChannel
from brainq.adapters.redis.slot_primary import SlotConnection, SlotPrimary, slot_pool
from brainq.runtime.failover import FollowsFailover
from brainq.runtime.settings.cluster_url import ClusterAddress
from brainq.runtime.settings.redis_url import parse_redis_url

CLUSTER_TAG = "cluster_tag"
"""The transport option with the hash tag of all keys, if the broker is a Redis Cluster."""


def tag_of(connection: Any) -> str:
    """Return the hash tag of the keys of a kombu connection. Returns "" if its broker is not a Redis Cluster."""
    return (connection.transport_options or {}).get(CLUSTER_TAG, "")


def slot_primary_of(connection: Any) -> SlotPrimary:
    """Return what finds the primary of a kombu connection's keys."""
    return SlotPrimary(ClusterAddress(tuple(map(parse_redis_url, connection.alt)), tag_of(connection)))


class SlotPrimaryConnection(SlotConnection, PrimaryConnection):
    """A connection to the primary of a slot of a Redis Cluster."""


class SlotPrimaryTlsConnection(
    SlotConnection, FollowsFailover, cast("type", kombu_redis.SentinelChannel.connection_class_ssl)
):
    """A connection with TLS to the primary of a slot of a Redis Cluster."""


class _SlotChannel:
    """A mixin for channels whose keys have one hash tag: one primary has them all."""

    connection_class = SlotPrimaryConnection
    connection_class_ssl = SlotPrimaryTlsConnection

    def _sentinel_managed_pool(self: Any, asynchronous: bool = False) -> Any:
        slot = slot_primary_of(self.connection.client)
        options = self._connparams(asynchronous)
        del options["host"], options["port"]
        return slot_pool(slot, **options)


class ClusterChannel(_SlotChannel, SentinelChannel):
    """A worker's channel to a Redis Cluster."""


class ClusterTransport(PollingMixin, kombu_redis.SentinelTransport):
    """A worker's transport over the primary of a slot of a Redis Cluster."""

    Channel = ClusterChannel


class PooledClusterChannel(_SlotChannel, kombu_redis.SentinelChannel):
    """A channel of a producer, or of `celery inspect`, to a Redis Cluster."""


class PooledClusterTransport(kombu_redis.SentinelTransport):
    """A transport of producers, and of `celery inspect`, over the primary of a slot of a Redis Cluster."""

    Channel = PooledClusterChannel
