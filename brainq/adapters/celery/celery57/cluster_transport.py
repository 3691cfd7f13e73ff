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


class SlotPrimaryConnection(SlotConnection, PrimaryConnection):
    """A connection to the primary of a slot of a Redis Cluster."""


class SlotPrimaryTlsConnection(
    SlotConnection, FollowsFailover, cast("type", kombu_redis.SentinelChannel.connection_class_ssl)
):
    """A connection with TLS to the primary of a slot of a Redis Cluster."""


class _SlotChannel:
    """A mixin for channels whose keys have one hash tag, `cluster_tag`: one primary has them all."""

    connection_class = SlotPrimaryConnection
    connection_class_ssl = SlotPrimaryTlsConnection
    from_transport_options = (*kombu_redis.Channel.from_transport_options, CLUSTER_TAG)
    cluster_tag = ""

    def _sentinel_managed_pool(self: Any, asynchronous: bool = False) -> Any:
        seeds = tuple(parse_redis_url(url) for url in self.connection.client.alt)
        slot = SlotPrimary(ClusterAddress(seeds, self.cluster_tag))
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
