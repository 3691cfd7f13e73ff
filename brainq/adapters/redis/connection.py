"""The factory of all Redis clients, and the test whether an exception means that Redis is unavailable."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from queue import SimpleQueue
from typing import Any, NoReturn, cast

import hiredis
import redis
import redis.exceptions
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry
from redis.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from brainq.adapters.redis.slot_primary import SlotConnection, SlotPrimary, slot_pool
from brainq.contracts.refusal import Refusal
from brainq.runtime.failover import FollowsFailover
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.redis_url import KEEPALIVE_OPTIONS, parse_redis_url, parse_sentinel_url

# redis-py 8 repeats a command up to ten times when a reply is lost. brainq's scripts may run twice without harm, but
# the caller must decide that, because only the caller knows how long the turn's lease still lasts.
NO_BLIND_RETRY = 0

# The timeout is longer than the longest blocking read (events, 2 s). Together with a heartbeat it is shorter than a
# lease (10 s), so a command that a silent connection lost is repeated before the lease lapses.
SOCKET_TIMEOUT_S = 5.0

CHECK_AFTER_IDLE_S = 5.0

SENTINEL_S = 2.0  # to wait for one sentinel, before the next is asked

# The errors that are raised while Redis does not answer.
UNAVAILABLE_ERRORS = (redis.ConnectionError, redis.TimeoutError, OSError)

MAX_CONNECTIONS = 512

SCRIPT_CONNECTIONS = 8  # The number of connections for scripts per process.

Command = tuple[str | int, ...]

"""A plain command: its name and its arguments."""

# redis-py calls this, too, after it has checked each argument twice.
pack_command = cast("Callable[[tuple[Any, ...]], bytes]", getattr(hiredis, "pack_command"))  # noqa: B009 - it has no stub

_SCRIPT_COMMANDS = frozenset({"EVALSHA", "EVAL"})

# Managed services remove commands, or deny them to every user. redis-py has removed NOPERM from its own error.
_DENIED = re.compile(r"(ERR )?(unknown (sub)?command|.*command is not (available|allowed|supported))", re.IGNORECASE)


@cache
def driver_info(name: str) -> DriverInfo:
    """Return what CLIENT LIST shows of a connection, as its `lib-name`.

    A service that permits no CLIENT SETINFO shows nothing. CLIENT SETNAME is not used, because its refusal would close
    the connection. Made once: redis-py would read its own version from the disk for each connection (0.5 ms).
    """
    return DriverInfo().add_upstream_driver(name, version("brainq"))


@dataclass(slots=True, eq=False)
class ScriptConnection:
    """One connection, opened when first used. `used` is when it last answered, by time.monotonic()."""

    connection: Any = None
    used: float = 0.0
    is_open: bool = False

    def close(self) -> None:
        self.connection.disconnect()
        self.is_open = False


class Client(redis.Redis):
    """A redis-py client with a fast path for scripts.

    Nearly all commands of a worker are scripts. redis-py's general path (pool, retry object, metrics, callbacks) costs
    about as much CPU as the rest of a call, so here a script is one send and one read on one of a few connections. Few
    connections are enough, because Redis runs one script at a time, and because a hundred threads that wake at once
    spend more time on passing the interpreter's lock than on their work.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: SimpleQueue[ScriptConnection] = SimpleQueue()
        self._all_lines = [ScriptConnection() for _ in range(SCRIPT_CONNECTIONS)]
        for line in self._all_lines:
            self._lines.put(line)
        # If one connection was found broken, reconnect all that were last used before it.
        self._broken_at = 0.0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command once. Raises redis' ConnectionError, TimeoutError or ResponseError."""
        if options or args[0] not in _SCRIPT_COMMANDS:
            return super().execute_command(*args, **options)
        line = self._lines.get()
        try:
            idle_s = time.monotonic() - line.used
            is_good = line.is_open and idle_s <= CHECK_AFTER_IDLE_S and line.used >= self._broken_at
            connection = line.connection if is_good else self._open(line)
            try:
                connection.send_packed_command((pack_command(args),), check_health=False)
                reply = connection.read_response()
            except redis.ResponseError:
                raise  # The error is an answer like any other, so the connection is good.
            except BaseException as error:
                self._give_up(line, error)
            line.used = time.monotonic()
            return reply
        finally:
            self._lines.put(line)

    def many(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send plain commands in one round trip. Returns their raw replies, in order. Raises the first error among
        them."""
        replies = self.replies(commands)
        for reply in replies:
            if isinstance(reply, redis.ResponseError):
                raise reply
        return replies

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands in one round trip. Returns their raw replies, in order. A command that Redis refused has its
        error as the reply, except INFO: a server that does not permit it reports nothing, so its reply is empty."""
        line = self._lines.get()
        try:
            connection = self._open(line)
            try:
                packed = b"".join([pack_command(tuple(command)) for command in commands])
                connection.send_packed_command((packed,), check_health=False)
                # Read all replies before raising an error: a reply left in the socket would answer the next command.
                found = [self._reply(connection, command[0]) for command in commands]
            except BaseException as error:
                self._give_up(line, error)
            line.used = time.monotonic()
            return found
        finally:
            self._lines.put(line)

    def server_info(self, section: str = "default") -> Mapping[str, str]:
        """Return what the server reports of itself. Returns nothing if it does not permit INFO."""
        return info_fields(self.many([("INFO", section)])[0])

    @staticmethod
    def _reply(connection: Any, name: Any) -> Any:
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return "" if name == "INFO" and is_denied(error) else error

    def close(self) -> None:
        """Close the scripts' connections and the pool's."""
        for line in self._all_lines:
            if line.connection is not None:
                line.close()
        super().close()

    def _open(self, line: ScriptConnection) -> Any:
        if line.connection is None:
            pool: Any = self.connection_pool
            line.connection = pool.connection_class(**pool.connection_kwargs)
        elif line.is_open:
            if time.monotonic() - line.used > CHECK_AFTER_IDLE_S and _has_hung_up(line.connection):
                self._broken_at = time.monotonic()
            if line.used < self._broken_at:
                line.close()
        if not line.is_open:
            # Do not leave this to the next command: only this asks the sentinels for the current primary.
            line.connection.connect()
            _time_out_in_kernel(line.connection)
            line.is_open = True
        return line.connection

    def _give_up(self, line: ScriptConnection, error: BaseException) -> NoReturn:
        """Close the connection and raise, because the rest of a reply must not be read as the next reply."""
        line.close()
        if isinstance(error, UNAVAILABLE_ERRORS):
            self._broken_at = time.monotonic()
            self.connection_pool.disconnect(inuse_connections=False)
        if isinstance(error.__context__, BlockingIOError):  # The kernel's timeout has passed.
            raise redis.TimeoutError(f"Redis did not answer within {SOCKET_TIMEOUT_S:g} s") from error
        raise error


def _time_out_in_kernel(connection: Any) -> None:
    """Set the socket's timeout in the kernel.

    Python's own timeout polls before each send and read and releases the interpreter's lock for it, which costs more
    than the send. The kernel's timeout does not work for TLS.
    """
    sock: socket.socket = connection._sock
    if type(sock) is not socket.socket or connection.socket_timeout is None:
        return
    limit = struct.pack("ll", *divmod(int(connection.socket_timeout * 1_000_000), 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, option, limit)
    sock.settimeout(None)


def _has_hung_up(connection: Any) -> bool:
    """Return whether the server or a proxy has closed an idle connection, which makes it readable."""
    try:
        return bool(connection.can_read())
    except UNAVAILABLE_ERRORS:
        # Some versions report the end this way. If the error got out, the dead connection would be tried for ever.
        return True


def as_mapping(reply: Any) -> dict[str, str]:
    """Return the reply to HGETALL as a dict: it is a map in protocol 3 and a flat list in protocol 2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def info_fields(reply: str) -> dict[str, str]:
    """Return the fields of a raw reply to INFO. Pure."""
    return dict(line.split(":", 1) for line in str(reply).splitlines() if ":" in line)


def server_name(info: Mapping[str, str]) -> str:
    """Return the name of a server with this INFO, such as `Valkey 9.1.0`, or `Redis` if it does not report it. Pure."""
    # Valkey also reports the Redis version that it is compatible with.
    known = {"Valkey": info.get("valkey_version"), "Redis": info.get("redis_version")}
    return next((f"{name} {number}" for name, number in known.items() if number), "Redis")


def is_denied(reply: object) -> bool:
    """Return whether a reply is the error of a command that the service, or the user's rules, do not permit."""
    is_error = isinstance(reply, redis.ResponseError)
    return is_error and (isinstance(reply, redis.exceptions.NoPermissionError) or bool(_DENIED.match(str(reply))))


def keepalive_options(url: str) -> dict[str, Any]:
    """Return redis-py's options for TCP keepalive."""
    # A unix socket has no keepalive, and its connection class rejects the option.
    local = url.startswith("unix://")
    return {} if local else {"socket_keepalive": True, "socket_keepalive_options": KEEPALIVE_OPTIONS}


class PrimaryConnection(FollowsFailover, SentinelManagedConnection):
    """A connection to the primary that sentinels name."""


class SlotPrimaryConnection(SlotConnection, PrimaryConnection):
    """A connection to the primary of a slot."""


class SlotPrimaryTlsConnection(SlotConnection, FollowsFailover, SentinelManagedSSLConnection):
    """A connection with TLS to the primary of a slot."""


def make_pool(url: str, **options: Any) -> redis.ConnectionPool:
    """Return a pool of connections to the server at `url`, or to the primary that its sentinels or the nodes of its
    cluster name. Raises SetupError for a malformed URL."""
    if url.startswith(CLUSTER_SCHEMES):
        slot = SlotPrimary(parse_cluster_url(url))
        kind = SlotPrimaryTlsConnection if slot.has_tls else SlotPrimaryConnection
        return slot_pool(slot, kind, **slot.options, **options)
    if not url.startswith("sentinel://"):
        return redis.BlockingConnectionPool.from_url(
            parse_redis_url(url).client_url, timeout=SOCKET_TIMEOUT_S, **options
        )
    at = parse_sentinel_url(url)
    # Ask each sentinel once: redis-py would try a dead one eleven times before the next one.
    once = Retry(NoBackoff(), NO_BLIND_RETRY)
    asking = {"socket_timeout": SENTINEL_S, "socket_connect_timeout": SENTINEL_S, "retry": once}
    login = {"username": at.username, "password": at.password, "db": at.database}
    asked = Sentinel(at.hosts, sentinel_kwargs=asking)
    return SentinelConnectionPool(at.master, asked, connection_class=PrimaryConnection, **login, **options)


def make_client(url: str) -> Client:
    """Return a client that decodes to str, never repeats a command by itself, and accepts broken text."""
    pool = make_pool(
        url,
        max_connections=MAX_CONNECTIONS,
        decode_responses=True,
        # A lone surrogate from a model's stream must not make a whole turn unstorable.
        encoding_errors="replace",
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=5.0,
        health_check_interval=30,
        retry=Retry(NoBackoff(), NO_BLIND_RETRY),
        driver_info=driver_info("brainq"),
        **keepalive_options(url),
    )
    return Client(connection_pool=pool)


def is_redis_unavailable(failure: BaseException) -> bool:
    """Return whether a failure means that Redis is unavailable. A failure that would repeat, such as a value that
    cannot be sent, returns False."""
    return isinstance(failure, redis.RedisError) and not isinstance(failure, redis.DataError)


DISK_FULL = Refusal(
    "cannot write to its disk, so it accepts no writes",
    "free space on the disk of its files (`CONFIG GET dir`); writes then work again without a restart",
)
MEMORY_FULL = Refusal(
    "is full, so it accepts no writes",
    "raise its limit (`CONFIG SET maxmemory` and its configuration file, or the console of a managed service); writes "
    "then work again without a restart",
)
LOGIN_REFUSED = Refusal("refuses the login", "set user and password in its URL, percent-encoded")
_BY_WORD = {
    "MISCONF": DISK_FULL,
    "OOM": MEMORY_FULL,
    "READONLY": Refusal("is a replica and accepts no writes", "set its URL to the address of the primary"),
    "NOREPLICAS": Refusal(
        "has too few replicas, so it accepts no writes", "start replicas, or lower `min-replicas-to-write`"
    ),
    "NOPERM": Refusal(
        "does not permit this for the user in its URL",
        "`brainq doctor` names the missing rights; docs/operate/deploy.md has the rules of the user",
    ),
    "NOAUTH": LOGIN_REFUSED,
    "WRONGPASS": LOGIN_REFUSED,
}
_BY_TYPE: dict[type[Exception], str] = {
    redis.exceptions.OutOfMemoryError: "OOM",
    redis.exceptions.ReadOnlyError: "READONLY",
    redis.exceptions.NoPermissionError: "NOPERM",
    redis.exceptions.AuthenticationError: "NOAUTH",
    redis.exceptions.AuthenticationWrongNumberOfArgsError: "NOAUTH",
}  # redis-py removes the first word of these errors.


class ClosedRedis(redis.ResponseError):
    """The error of a Redis that `brainq redis move` has closed.

    mark: the hash in place of the tried key, see server_move.py.
    """

    def __init__(self, mark: Mapping[str, str]) -> None:
        super().__init__("closed by brainq redis move")
        state, other = mark.get("state"), mark.get("other")
        if state == "moved":
            self.refusal = Refusal(f"is no longer used: its data has moved to {other}", f"set its URL to {other}")
        else:
            way = "from" if state == "arriving" else "to"
            self.refusal = Refusal(
                f"is closed: `brainq redis move` moves data {way} {other}",
                "wait for it; if it was interrupted, run it again",
            )


def redis_refusal(failure: BaseException) -> Refusal | None:
    """Return why a Redis that answers refuses. Returns None for a failure of another kind."""
    if isinstance(failure, ClosedRedis):
        return failure.refusal
    word = next((word for kind, word in _BY_TYPE.items() if isinstance(failure, kind)), "")
    return _BY_WORD.get(word or str(failure).partition(" ")[0])


def try_write(client: redis.Redis, key: str) -> None:
    """Send a write that changes nothing. Redis refuses it if it would refuse any other write.

    `key` must be a string or missing. Raises redis' errors, and ClosedRedis if it is a hash.
    """
    try:
        client.execute_command("SETRANGE", key, 0, "")
    except redis.ResponseError as refused:
        if not str(refused).startswith("WRONGTYPE"):
            raise
        raise ClosedRedis(cast("dict[str, str]", client.hgetall(key))) from refused
