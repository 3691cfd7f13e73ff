"""One connection to Redis on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis
from redis.asyncio import ConnectionPool, SentinelConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from brainq.sentinel import sentinels_of
from brainq.state.connection import AWAY, NO_BLIND_RETRY, SENTINEL_S, Command, keepalive_of, pack

SOCKET_TIMEOUT_S = 5.0  # longer than the longest blocking read of streams, 2 s


class AsyncLine:
    """Opened when first asked, and again after it broke. One task may use it at a time; it repeats nothing."""

    def __init__(self, url: str) -> None:
        self._sentinel = _sentinel_of(url)
        self._pool = _pool_of(url, self._sentinel)
        self._connection: Any = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None and bool(self._connection.is_connected)

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go; their raw replies, in order, and in place of one what Redis refused.

        Raises redis' ConnectionError or TimeoutError. After any failure, and when it is cancelled, the line is closed:
        half a reply may be left in the socket, and nobody may read it as the next one.
        """
        try:
            async with asyncio.timeout(SOCKET_TIMEOUT_S):
                return await self._ask(commands)
        except TimeoutError as late:
            raise redis.TimeoutError(f"Redis did not answer within {SOCKET_TIMEOUT_S:g} s") from late

    async def close(self) -> None:
        """Hang up. The next `ask` connects again."""
        with suppress(*AWAY):  # the other end may have gone already
            if self._connection is not None:
                await self._connection.disconnect()
        for asked in self._sentinel.sentinels if self._sentinel else ():
            with suppress(*AWAY):
                await asked.aclose()

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        if self._connection is None:
            self._connection = self._pool.connection_class(**self._pool.connection_kwargs)
        connection = self._connection
        try:
            await connection.connect()  # which does nothing where it is connected
            packed = b"".join([pack(command) for command in commands])
            await connection.send_packed_command(packed, check_health=False)
            return [await _reply(connection) for _ in commands]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise


async def _reply(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except redis.ResponseError as error:
        return error


def _sentinel_of(url: str) -> Any:
    if not url.startswith("sentinel://"):
        return None
    # Asked once each: redis-py would try one that is dead eleven times before it asks the next.
    once = Retry(NoBackoff(), NO_BLIND_RETRY)
    asking = {"socket_timeout": SENTINEL_S, "socket_connect_timeout": SENTINEL_S, "retry": once}
    return Sentinel(sentinels_of(url).hosts, sentinel_kwargs=asking)


def _pool_of(url: str, sentinel: Any) -> Any:
    """What knows how to connect; it holds no connection."""
    options: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "replace",  # as the client of scripts
        "protocol": 2,  # one form of replies, whatever the server
        # redis-py would use asyncio.wait_for, which in Python 3.11 may lose a cancel; `ask` has the limit.
        "socket_timeout": None,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "retry": Retry(NoBackoff(), NO_BLIND_RETRY),
        "client_name": "brainq-streams",
        **keepalive_of(url),
    }
    if sentinel is None:
        return ConnectionPool.from_url(url, **options)
    at = sentinels_of(url)
    login = {"username": at.username, "password": at.password, "db": at.database}
    return SentinelConnectionPool(at.master, sentinel, **login, **options)
