"""Failovers of Sentinel and of a Redis Cluster: this process notices them at once, and a write starts only if replicas
have its data."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import redis

from brainq.adapters.redis.connection import is_denied, is_redis_unavailable
from brainq.adapters.redis.listener import RedisListener
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.adapters.redis.slot_primary import SlotPrimary
from brainq.runtime.failover import PRIMARIES, Address
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.threads import KeptThread
from brainq.runtime.outage import OutageRetry
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.redis_url import parse_sentinel_url
from brainq.runtime.text.service_url import host_in_url

log = logger("brainq.runtime.failover")

T = TypeVar("T")

SWITCHED = "+switch-master"  # NAME OLD_HOST OLD_PORT NEW_HOST NEW_PORT
SENTINELS_STALE_S = 15.0  # they demote an old primary some ten seconds after they promoted another one
WATCH_S = 1.0
NODES_STALE_S = 2.0  # two nodes named the new primary when it was noticed; others hear of it within a second
ACKNOWLEDGED_WITHIN_MS = 500
# A primary loses the replica that is promoted, and learns within about two seconds that it is no longer a primary. So
# it waits longer than that for a missing replica, which then counts as gone.
MISSED_FOR_S = 5.0
_REPLICATION = re.compile(r"connected_slaves:(\d+).*master_replid:(\w+)", re.DOTALL)


class FailoverListener:
    """A listener that closes this process's connections to a primary that was replaced.

    urls   the addresses of Redis servers; there is one thread for each sentinel, and for each cluster
    """

    def __init__(self, urls: Iterable[str]) -> None:
        urls = set(urls)
        self._listeners: list[RedisListener | SlotWatch] = [
            SlotWatch(SlotPrimary(parse_cluster_url(url))) for url in urls if url.startswith(CLUSTER_SCHEMES)
        ]
        for at in {parse_sentinel_url(url) for url in urls if url.startswith("sentinel://")}:
            for host, port in at.hosts:
                listener = RedisListener(f"redis://{host_in_url(host)}:{port}/0", "failovers")
                listener.hear(SWITCHED, partial(_switch, at.master))
                self._listeners.append(listener)

    def listen(self) -> None:
        """Start listening unless it has been started."""
        for listener in self._listeners:
            listener.listen()

    def close(self) -> None:
        """Stop listening. Does not wait."""
        for listener in self._listeners:
            listener.close()


def _switch(master: str, message: str) -> None:
    name, old_host, old_port, new_host, new_port = message.split(" ")
    if name == master:
        _replace(master, (old_host, int(old_port)), (new_host, int(new_port)), SENTINELS_STALE_S)


def _replace(service: str, old: Address, new: Address, stale_for_s: float) -> None:
    if cut := PRIMARIES.replace(service, old, new, stale_for_s):
        log.warning("another Redis is the primary", host=new[0], port=new[1], cut_connections=cut)


class SlotWatch:
    """A thread that asks the cluster once a second who has a slot.

    A command that reaches the old primary learns it at once. A connection that only listens does not, and neither does
    one to a primary that was cut off from the others.
    """

    def __init__(self, slot: SlotPrimary) -> None:
        self._slot = slot
        self._thread = KeptThread("brainq-slot", self._run)

    def listen(self) -> None:
        """Start the thread unless it runs. Raises RuntimeError if the system refuses the thread."""
        self._thread.ensure()

    def close(self) -> None:
        """Stop watching. Does not wait."""
        self._thread.stop()

    def _run(self, stopping: threading.Event) -> None:
        known: Address | None = None
        while not stopping.wait(WATCH_S):
            with suppress(redis.RedisError):  # no primary now: the next look finds the new one
                found = self._slot.discover_master(self._slot.service)
                if known not in (None, found):
                    _replace(self._slot.service, known, found, NODES_STALE_S)
                known = found


class ReplicaAcks:
    """A runner of scripts whose effect must survive a failover.

    A write starts only if most replicas have all data that led to it, so that a promoted replica knows its turn.
    `patience_s` is how long a script is repeated.
    """

    def __init__(self, scripts: Scripts, patience_s: float) -> None:
        self._scripts = scripts
        self._patience_s = patience_s
        self._history = ""  # The history id of the primary. Another primary has another one.
        self._replicas = 0
        self._missed_at: float | None = None

    def acknowledged(self, call: ScriptCall[T]) -> T:
        """Run a script.

        Returns its reply once replicas have its effect. Raises redis' ConnectionError if too few do.
        """
        return OutageRetry({}, is_redis_unavailable, lasts_s=self._patience_s)(partial(self._once, call))

    def _once(self, call: ScriptCall[T]) -> T:
        if not self._history:
            self._look(*self._scripts.read([("INFO", "replication")]))
        wanted = (self._replicas + 1) // 2
        waits = ("WAIT", wanted, ACKNOWLEDGED_WITHIN_MS)
        reply, (acknowledged, found) = call.with_reads([waits, ("INFO", "replication")])
        self._look(found)
        if is_denied(acknowledged):  # by a managed service; doctor says so
            return reply
        if isinstance(acknowledged, redis.ResponseError):
            raise acknowledged
        if acknowledged < wanted:
            raise redis.ConnectionError(f"{acknowledged} replicas have it, {wanted} must")
        return reply

    def _look(self, info: str) -> None:
        found = _REPLICATION.search(info)
        replicas, history = (int(found[1]), found[2]) if found else (0, "unknown")
        now, missed_at = time.monotonic(), self._missed_at
        if history != self._history or replicas >= self._replicas or (missed_at and now - missed_at > MISSED_FOR_S):
            self._history, self._replicas, self._missed_at = history, replicas, None
        elif missed_at is None:
            self._missed_at = now
