"""Finds the primary of a hash slot in a Redis Cluster, for brainq's clients and for Celery's transport.

redis-py's pools for Sentinel ask `discover_master` for the primary before each connection. `SlotPrimary` answers in
place of sentinels. So clusters and Sentinel share those pools, and `runtime/failover.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection, parse_url
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, NoPermissionError, ResponseError, TryAgainError
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from brainq.runtime.failover import Address
from brainq.runtime.settings.cluster_url import ClusterAddress

ASK_S = 2.0  # to wait for one node, before the next is asked

ELSEWHERE = (AskError, TryAgainError, ClusterDownError)
"""The errors by which a node says that it does not serve a slot now. MOVED is an AskError, MASTERDOWN a
ClusterDownError."""


class Shard(NamedTuple):
    """A primary and its replicas, as one node of the cluster describes them.

    slots:   the first and last slot of each range.
    primary: None while the shard has none that is reachable.
    nodes:   the addresses of all.
    """

    slots: tuple[tuple[int, int], ...]
    primary: Address | None
    nodes: tuple[Address, ...]


def read_shards(reply: Sequence[Any], asked: Address, *, tls: bool) -> list[Shard]:
    """Read a reply to CLUSTER SHARDS. A node that announces no address has that of the node that was asked."""
    found: list[Shard] = []
    for shard in map(_fields, reply):
        ends, nodes = shard["slots"], list(map(_fields, shard["nodes"]))
        places = [(_host(asked, node.get("endpoint"), node.get("ip")), _port(node, tls=tls)) for node in nodes]
        primaries = (
            place
            for place, node in zip(places, nodes, strict=True)
            if node["role"] == "master" and node.get("health", "online") == "online"
        )
        slots = tuple((int(first), int(last)) for first, last in zip(ends[::2], ends[1::2], strict=True))
        found.append(Shard(slots, next(primaries, None), tuple(places)))
    return found


def read_slots(reply: Sequence[Any], asked: Address) -> list[Shard]:
    """Read a reply to CLUSTER SLOTS, which names the primary of each range first."""
    found: list[Shard] = []
    for first, last, *nodes in reply:
        places = tuple((_host(asked, node[0], *_announced_ip(node)), int(node[1])) for node in nodes)
        found.append(Shard(((int(first), int(last)),), places[0], places))
    return found


def primary_of(shards: Iterable[Shard], slot: int) -> Address | None:
    """Return the primary of a slot. Returns None if the slot has none now."""
    owners = (shard.primary for shard in shards if any(first <= slot <= last for first, last in shard.slots))
    return next(owners, None)


def slot_of(tag: str) -> int:
    """Return the hash slot of all keys with this hash tag."""
    return key_slot(tag.encode())


def _fields(flat: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _announced_ip(node: Sequence[Any]) -> list[Any]:
    return [_fields(node[3]).get("ip")] if len(node) > 3 and node[3] else []


def _host(asked: Address, *announced: str | None) -> str:
    return next((host for host in announced if host not in (None, "", "?")), asked[0])


def _port(node: dict[str, Any], *, tls: bool) -> int:
    first, second = ("tls-port", "port") if tls else ("port", "tls-port")
    return int(node.get(first) or node[second])


class SlotPrimary:
    """What redis-py's pools ask for the primary of one slot.

    A node that was cut off from the others may still take itself for the primary. So the address counts that two nodes
    name, or else the one that most nodes name.
    """

    sentinels: tuple[Any, ...] = ()  # a pool closes those of its manager

    def __init__(self, address: ClusterAddress) -> None:
        seeds = [parse_url(seed.client_url) for seed in address.seeds]
        self.options: dict[str, Any] = {
            name: value for name, value in seeds[0].items() if name not in ("host", "port", "connection_class")
        }
        self.has_tls = seeds[0].get("connection_class") is SSLConnection
        self.slot = slot_of(address.tag)
        self.seeds = [(seed["host"], int(seed["port"])) for seed in seeds]
        self.service = f"slot {self.slot} of {','.join(f'{host}:{port}' for host, port in sorted(self.seeds))}"
        self._learned: list[Address] = []

    def discover_master(self, _service: str) -> Address:
        """Return the host and port of the primary. Raises redis' ConnectionError if no node names one, and the error of
        a node that refuses the login."""
        votes: Counter[Address] = Counter()
        failures: list[Exception] = []
        for shards in self._answers(failures):
            self._learned = [place for shard in shards for place in shard.nodes] or self._learned
            if (primary := primary_of(shards, self.slot)) is not None:
                votes[primary] += 1
                if votes[primary] == 2:
                    return primary
        if not votes:
            failure = failures[-1] if failures else None
            why = failure or "it has none now"
            raise redis.ConnectionError(f"no node names the primary of {self.service}: {why}") from failure
        return votes.most_common(1)[0][0]

    def shards(self) -> list[Shard]:
        """Return the shards as the first node that answers describes them.

        Raises redis' ConnectionError if none does, and the error of a node that refuses the login.
        """
        failures: list[Exception] = []
        for shards in self._answers(failures):
            return shards
        raise redis.ConnectionError(f"no node of {self.service} answers") from (failures[-1] if failures else None)

    def _answers(self, failures: list[Exception]) -> Iterator[list[Shard]]:
        """Yield the shards as each node that answers describes them, and add the errors of the others to `failures`.

        Raises the error of a node that refuses the login.
        """
        for node in self._nodes():
            try:
                shards = self._shards(node)
            except (redis.AuthenticationError, NoPermissionError):
                raise
            except (redis.RedisError, OSError) as error:
                failures.append(error)
                continue
            yield shards

    def _nodes(self) -> list[Address]:
        """Return the nodes to ask, in an order that spreads the questions of many processes."""
        nodes = list(dict.fromkeys([*self._learned, *self.seeds]))
        return random.sample(nodes, len(nodes))

    def _shards(self, node: Address) -> list[Shard]:
        connection = (SSLConnection if self.has_tls else Connection)(
            **self.options,
            host=node[0],
            port=node[1],
            protocol=2,
            decode_responses=True,
            socket_timeout=ASK_S,
            socket_connect_timeout=ASK_S,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            connection.connect()
            connection.send_command("CLUSTER", "SHARDS")
            try:
                return read_shards(connection.read_response(), node, tls=self.has_tls)
            except ResponseError:  # the server, or the rules of its user, do not have it
                connection.send_command("CLUSTER", "SLOTS")
                return read_slots(connection.read_response(), node)
        finally:
            connection.disconnect()


class SlotConnection:
    """A mixin for connections to the primary of a slot, placed before a connection class of redis-py.

    A node that does not serve the slot is left, as if the connection were lost: the next one asks where the slot is.
    """

    def read_response(self: Any, *args: Any, **options: Any) -> Any:
        """Read a reply. Raises redis' ConnectionError if the node does not serve the slot now."""
        try:
            return super().read_response(*args, **options)  # type: ignore[misc]
        except ELSEWHERE as elsewhere:
            self.disconnect()
            raise redis.ConnectionError(f"the slot is elsewhere: {elsewhere}") from elsewhere


class AsyncSlotConnection:
    """The same for redis-py's asyncio connections."""

    async def read_response(self: Any, *args: Any, **options: Any) -> Any:
        """Read a reply. Raises redis' ConnectionError if the node does not serve the slot now."""
        try:
            return await super().read_response(*args, **options)  # type: ignore[misc]
        except ELSEWHERE as elsewhere:
            await self.disconnect()
            raise redis.ConnectionError(f"the slot is elsewhere: {elsewhere}") from elsewhere


def slot_pool(slot: SlotPrimary, connection_class: type, **options: Any) -> SentinelConnectionPool:
    """Return a pool of connections to the primary of a slot. The options are those of redis-py's connections."""
    return SentinelConnectionPool(slot.service, slot, connection_class=connection_class, **options)


class AsyncSlotPrimary:
    """The same for redis-py's asyncio pools.

    A thread asks, because that is rare and the decisions stay in one place.
    """

    sentinels: tuple[Any, ...] = ()

    def __init__(self, primary: SlotPrimary) -> None:
        self._primary = primary

    async def discover_master(self, service: str) -> Address:
        """Return and raise what `SlotPrimary.discover_master` does."""
        return await asyncio.to_thread(self._primary.discover_master, service)
