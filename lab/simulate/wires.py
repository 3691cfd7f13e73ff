"""The connections to Redis and SQL. Before each trip other tasks may run, and it may be cut before or after its effect.

All processes share one connection to each server; the current task shows which process uses it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import Engine, Executable

from brainq.adapters.redis.connection import Client, ScriptConnection, make_pool
from brainq.adapters.sql.database import Database, Parameters, Record, Transaction
from lab.simulate.clock import CLOCK
from lab.simulate.hub import Hub

KEPT_MS = 86_400_000  # the real lifetime of keys that live for seconds, which the virtual clock ends


class Trips(Protocol):
    """The faults of trips.

    before   lets other tasks run; returns `lost` for a request that never arrives; raises Killed if the process dies
    after    called when the trip has taken effect; returns `lost` for a reply that never arrives; raises Killed
    """

    def before(self, server: str, what: str) -> str: ...
    def after(self, server: str, what: str, reply: object) -> str: ...


class VirtualClient(Client):
    """brainq's Redis client with faults. `names` maps the hashes of scripts to their names."""

    def __init__(self, url: str, hub: Hub, trips: Trips) -> None:
        # No timeouts: a busy machine may be slow, and only the virtual clock decides what is late.
        never = {"socket_timeout": None, "socket_connect_timeout": None}
        pool = make_pool(url, max_connections=4, decode_responses=True, retry=Retry(NoBackoff(), 0), **never)
        super().__init__(connection_pool=pool)
        self._lines.get()
        line = ScriptConnection()
        self._all_lines = [line]
        while not self._lines.empty():
            self._lines.get()
        self._lines.put(line)
        self.names: dict[str, str] = {}
        self._hub = hub
        self._trips = trips
        self._ends: dict[str, int] = {}  # keys whose lifetime is virtual

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == "TIME":
            return self._time()
        if options or args[0] not in ("EVALSHA", "EVAL"):
            if args[0] == "PEXPIRE":
                return self.replies([args])[0]
            return self._trip(str(args[0]), lambda: super(VirtualClient, self).execute_command(*args, **options))
        reply = self.replies([args])[0]
        if isinstance(reply, redis.ResponseError):
            raise reply
        return reply

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        what = "+".join(self._name(command) for command in commands)
        return self._trip(what, lambda: self.now(commands))

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        pipe: Any = super().pipeline(transaction, shard_hint)
        send = pipe.execute

        def execute(raise_on_error: bool = True) -> Any:
            return self._trip("pipeline", lambda: send(raise_on_error))

        pipe.execute = execute
        return pipe

    def now(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the replies without delay or fault, for the simulation itself."""
        us = self._hub.now_us
        clock = ("HSET", CLOCK, "s", us // 1_000_000, "us", us % 1_000_000)
        found = super().replies([clock, *(self._without_lifetime(command) for command in commands)])[1:]
        return [self._time() if command[0] == "TIME" else reply for command, reply in zip(commands, found, strict=True)]

    def _trip(self, what: str, send: Callable[[], Any]) -> Any:
        if self._trips.before("redis", what) == "lost":
            raise redis.ConnectionError("the request was lost")
        reply = send()
        if self._trips.after("redis", what, reply) == "lost":
            raise redis.ConnectionError("the reply was lost")
        return reply

    def _name(self, command: Sequence[Any]) -> str:
        return self.names.get(command[1], "?") if command[0] == "EVALSHA" else str(command[0])

    def _time(self) -> list[int]:
        return [self._hub.now_us // 1_000_000, self._hub.now_us % 1_000_000]

    def _without_lifetime(self, command: Sequence[Any]) -> Sequence[Any]:
        """Return the command with a lifetime of a day: the virtual clock ends keys that live for seconds."""
        if command[0] == "SET" and "PX" in command:
            at = command.index("PX")
            if command[1] not in self._ends:  # a SET with NX that finds the key there renews nothing
                self._end_later(command[1], int(command[at + 1]))
            return (*command[:at], "PX", KEPT_MS, *command[at + 2 :])
        if command[0] == "PEXPIRE" and command[1] in self._ends:
            self._end_later(command[1], int(command[2]))
            return ("PEXPIRE", command[1], KEPT_MS)
        return command

    def _end_later(self, key: str, for_ms: int) -> None:
        ends_us = self._ends[key] = self._hub.now_us + for_ms * 1000

        def end() -> None:
            if self._ends.get(key) == ends_us:
                del self._ends[key]
                self.now([("DEL", key)])

        self._hub.after(for_ms / 1000, end)


class VirtualDatabase(Database):
    """brainq's database with faults. A transaction is one trip, because SQL lets nothing happen between its
    statements."""

    trips: Trips
    _is_inside = False

    def write(self, statement: Executable, parameters: Parameters, *, durably: bool = False) -> int:
        return self._trip("write", lambda: super(VirtualDatabase, self).write(statement, parameters, durably=False))

    def write_returning(self, statement: Executable, parameters: Parameters) -> Record | None:
        return self._trip("write", lambda: super(VirtualDatabase, self).write_returning(statement, parameters))

    def first(self, statement: Executable, parameters: Parameters) -> Record | None:
        return self._trip("read", lambda: super(VirtualDatabase, self).first(statement, parameters))

    def all(self, statement: Executable, parameters: Parameters) -> Sequence[Record]:
        return self._trip("read", lambda: super(VirtualDatabase, self).all(statement, parameters))

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        if self.trips.before("sql", "transaction") == "lost":
            raise self._away()
        with super().transaction() as connection:
            self._is_inside = True
            try:
                yield connection
            finally:
                self._is_inside = False
        if self.trips.after("sql", "transaction", None) == "lost":
            raise self._away()

    def _trip(self, what: str, send: Callable[[], Any]) -> Any:
        if self._is_inside:
            return send()
        if self.trips.before("sql", what) == "lost":
            raise self._away()
        found = send()
        if self.trips.after("sql", what, None) == "lost":
            raise self._away()
        return found

    def _away(self) -> Exception:
        return self.failure("", sqlite3.OperationalError("the database is away"))


def virtual_database(engine: Engine, trips: Trips) -> VirtualDatabase:
    database = VirtualDatabase(engine)
    database.trips = trips
    return database
