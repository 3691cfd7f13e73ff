"""A connection to Redis on an event loop, and a batcher of quick commands of many tasks."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis
from redis.asyncio import ConnectionPool, SentinelConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelManagedConnection, SentinelManagedSSLConnection
from redis.backoff import NoBackoff

from brainq.adapters.redis.connection import (
    NO_BLIND_RETRY,
    SENTINEL_S,
    UNAVAILABLE_ERRORS,
    Command,
    driver_info,
    keepalive_options,
    pack_command,
)
from brainq.adapters.redis.slot_primary import AsyncSlotConnection, AsyncSlotPrimary, SlotPrimary
from brainq.runtime.processes.threads import as_exception
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.redis_url import parse_redis_url, parse_sentinel_url

ASYNC_SOCKET_TIMEOUT_S = 5.0  # longer than the longest blocking read of streams, 2 s
FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 1.0
MAX_BATCH = 20  # The number of callers per round trip. Each may get a page of events back.
_PendingCommands = tuple[Sequence[Command], "asyncio.Future[list[Any]]"]


class AsyncConnection:
    """A connection that opens at its first use, and reopens after it broke. Only one task may use it at a time. It does
    not repeat commands."""

    def __init__(self, url: str) -> None:
        self._sentinel = _make_sentinel(url)
        self._pool = _make_async_pool(url, self._sentinel)
        self._connection: Any = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None and bool(self._connection.is_connected)

    async def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one round trip.

        Returns their raw replies, in order. A command that Redis refused has its error as the reply.

        Raises redis' ConnectionError or TimeoutError. After any failure or cancellation the connection is closed,
        because half a reply may be left in the socket and must not be read as the next one.
        """
        try:
            async with asyncio.timeout(ASYNC_SOCKET_TIMEOUT_S):
                return await self._ask(commands)
        except TimeoutError as late:
            raise redis.TimeoutError(f"Redis did not answer within {ASYNC_SOCKET_TIMEOUT_S:g} s") from late

    async def close(self) -> None:
        """Close the connection. The next use opens it again."""
        with suppress(*UNAVAILABLE_ERRORS):  # The other end may already have closed the connection.
            if self._connection is not None:
                await self._connection.disconnect()
        for sentinel in self._sentinel.sentinels if self._sentinel else ():
            with suppress(*UNAVAILABLE_ERRORS):
                await sentinel.aclose()

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        if self._connection is None:
            self._connection = self._pool.connection_class(**self._pool.connection_kwargs)
        connection = self._connection
        try:
            await connection.connect()  # This does nothing if it is connected.
            packed = b"".join([pack_command(command) for command in commands])
            await connection.send_packed_command(packed, check_health=False)
            return [await _read_reply(connection) for _ in commands]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise


async def _read_reply(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except redis.ResponseError as error:
        return error


def _make_sentinel(url: str) -> Any:
    if not url.startswith("sentinel://"):
        return None
    # Send each command once: redis-py would try a dead sentinel eleven times before the next one.
    once = Retry(NoBackoff(), NO_BLIND_RETRY)
    asking = {"socket_timeout": SENTINEL_S, "socket_connect_timeout": SENTINEL_S, "retry": once}
    return Sentinel(parse_sentinel_url(url).hosts, sentinel_kwargs=asking)


def _make_async_pool(url: str, sentinel: Any) -> Any:
    """Return a pool that can connect. It contains no connection."""
    options: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "replace",  # As in the client of scripts.
        "protocol": 2,  # This gives replies of the same form from every server.
        # redis-py would use asyncio.wait_for, which in Python 3.11 may lose a cancel; `ask` has the limit.
        "socket_timeout": None,
        "socket_connect_timeout": ASYNC_SOCKET_TIMEOUT_S,
        "retry": Retry(NoBackoff(), NO_BLIND_RETRY),
        "driver_info": driver_info("brainq-streams"),
        **keepalive_options(url),
    }
    if url.startswith(CLUSTER_SCHEMES):
        slot = SlotPrimary(parse_cluster_url(url))
        kind = AsyncSlotTlsConnection if slot.has_tls else AsyncSlotPrimaryConnection
        asked = AsyncSlotPrimary(slot)
        return SentinelConnectionPool(slot.service, asked, connection_class=kind, **slot.options, **options)
    if sentinel is None:
        return ConnectionPool.from_url(parse_redis_url(url).client_url, **options)
    at = parse_sentinel_url(url)
    login = {"username": at.username, "password": at.password, "db": at.database}
    return SentinelConnectionPool(at.master, sentinel, **login, **options)


class AsyncSlotPrimaryConnection(AsyncSlotConnection, SentinelManagedConnection):
    """A connection to the primary of a slot."""


class AsyncSlotTlsConnection(AsyncSlotConnection, SentinelManagedSSLConnection):
    """A connection with TLS to the primary of a slot."""


class CommandBatcher:
    """A batcher that sends the commands of many tasks in common round trips.

    It sends in a task of its own, so a cancelled caller breaks no connection. That task ends when no caller waits.
    Commands must be safe to repeat, because a connection that was open and broke is reopened and used once more.
    """

    def __init__(self, line: AsyncConnection) -> None:
        self._line = line
        self._waiting: deque[_PendingCommands] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed: Exception | None = None

    async def run(self, *commands: Command, patience_s: float = 0.0) -> list[Any]:
        """Return the raw replies, in order. Raises redis' errors; if Redis refused a command, the first such error.

        patience_s   the seconds for which the commands are repeated while Redis is unavailable
        """
        until, backoff_s = time.monotonic() + patience_s, FIRST_BACKOFF_S
        while True:
            try:
                replies = await self._put(commands)
            except UNAVAILABLE_ERRORS:
                if time.monotonic() + backoff_s > until:
                    raise
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)
                continue
            for reply in replies:
                if isinstance(reply, redis.ResponseError):
                    raise reply
            return replies

    def run_unawaited(self, *commands: Command) -> None:
        """Send the commands without waiting for the replies. A failure is ignored."""
        if self._closed is None:
            # Mark the exception as retrieved, or asyncio would complain that nothing retrieved it.
            self._put(commands).add_done_callback(lambda future: future.cancelled() or future.exception())

    async def close(self, error: Exception) -> None:
        """Close the connection. Callers that wait for a reply get `error`."""
        self._closed = error
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        while self._waiting:
            _set_result(self._waiting.popleft()[1], error)
        await self._line.close()

    def _put(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        if self._closed is not None:
            raise self._closed
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((commands, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="brainq-asks")
        return future

    async def _run(self) -> None:
        task = asyncio.current_task()
        while self._waiting and task is not None and not task.cancelling():
            some = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
            try:
                replies = await self._run_batch([command for commands, _ in some for command in commands])
            except (asyncio.CancelledError, GeneratorExit):
                self._waiting.extendleft(reversed(some))
                raise
            except BaseException as failure:
                for _, future in some:
                    _set_result(future, as_exception("a batch of commands", failure))
                continue
            at = 0
            for commands, future in some:
                _set_result(future, replies[at : at + len(commands)])
                at += len(commands)

    async def _run_batch(self, commands: Sequence[Command]) -> list[Any]:
        was_open = self._line.is_open
        try:
            return await self._line.run(commands)
        except UNAVAILABLE_ERRORS:
            if not was_open:
                raise
            return await self._line.run(commands)


def _set_result(future: asyncio.Future[list[Any]], answer: list[Any] | Exception) -> None:
    if future.done():  # The caller was cancelled.
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
