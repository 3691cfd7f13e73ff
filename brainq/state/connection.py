"""The one factory of Redis clients."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# redis-py 8 repeats a command up to ten times when a reply is lost. Our scripts may be run twice without harm,
# but only on purpose: whoever calls decides, because only the caller knows what the turn's lease still allows.
NO_BLIND_RETRY = 0

SOCKET_TIMEOUT_S = 10.0  # longer than the longest blocking read (events, 2 s)
CHECK_AFTER_IDLE_S = 5.0

_SCRIPT_COMMANDS = frozenset({"EVALSHA", "EVAL"})


class Client(redis.Redis):
    """redis-py's client, with a short way for scripts.

    Scripts are nearly all a worker asks of Redis. redis-py's general way (pool, retry object, metrics, command
    callbacks) costs about as much CPU as the rest of a call; here each thread keeps a connection of its own and
    a script is one send and one read on it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._own = threading.local()
        self._opened: weakref.WeakSet[Any] = weakref.WeakSet()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Like redis-py's, never repeated. Raises redis' ConnectionError, TimeoutError or ResponseError."""
        if options or args[0] not in _SCRIPT_COMMANDS:
            return super().execute_command(*args, **options)
        connection = self._connection()
        try:
            connection.send_packed_command(connection.pack_command(*args), check_health=False)
            reply = connection.read_response()
        except redis.ResponseError:
            raise  # an answer like any other: the connection is good
        except BaseException:
            # Half a reply may be left in the socket; nobody may read it as the next one.
            connection.disconnect()
            raise
        self._own.used = time.monotonic()
        return reply

    def many(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send plain commands in one go; their raw replies, in order. Raises the first error among them."""
        connection = self._connection()
        try:
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            # All are read before any is raised: a reply left in the socket would answer the next command.
            replies = [self._reply(connection) for _ in commands]
        except BaseException:
            connection.disconnect()
            raise
        self._own.used = time.monotonic()
        for reply in replies:
            if isinstance(reply, redis.ResponseError):
                raise reply
        return replies

    @staticmethod
    def _reply(connection: Any) -> Any:
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return error

    def close(self) -> None:
        """Close the threads' own connections and the pool's."""
        for connection in list(self._opened):
            connection.disconnect()
        super().close()

    def _connection(self) -> Any:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            pool: Any = self.connection_pool
            connection = pool.connection_class(**pool.connection_kwargs)
            connection.connect()
            self._own.connection = connection
            self._own.used = time.monotonic()
            self._opened.add(connection)
        elif time.monotonic() - self._own.used > CHECK_AFTER_IDLE_S and connection.can_read():
            # Something to read on an idle connection is its end: the server, or a proxy, has hung up.
            connection.disconnect()
        return connection


def as_mapping(reply: Any) -> dict[str, str]:
    """The reply to HGETALL: a map in protocol 3, a flat list in protocol 2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def make_client(url: str, *, max_connections: int = 512) -> Client:
    """A client that decodes to str, never repeats a command by itself, and survives broken text."""
    # A unix socket has no keepalive, and its connection class refuses to hear of it.
    keepalive = {} if url.startswith("unix://") else {"socket_keepalive": True}
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=max_connections,
        timeout=SOCKET_TIMEOUT_S,
        decode_responses=True,
        # A lone surrogate from a model's stream must not make a whole turn unstorable.
        encoding_errors="replace",
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=5.0,
        health_check_interval=30,
        retry=Retry(NoBackoff(), NO_BLIND_RETRY),
        client_name="brainq-state",
        **keepalive,
    )
    return Client(connection_pool=pool)
