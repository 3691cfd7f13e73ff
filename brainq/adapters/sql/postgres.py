"""Postgres connections with bounded waits, which also work behind a pooler in transaction mode.

A connection whose other end has vanished (a failed-over host, a firewall that dropped it) accepts data and never
answers. The kernel notices lost packets; if something in between still accepts them, only a timeout helps.

A pooler in transaction mode (PgBouncer, or the poolers of Supabase, Neon, Cloud SQL and RDS Proxy) runs each
transaction on whichever server process is free. A prepared statement or a session setting would stay on a server
process that the next client gets. Behind a pooler, therefore, nothing is prepared, and settings are local to a
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]

from brainq.errors import SetupError
from brainq.runtime.observe.logs import logger

log = logger("brainq.store")

CONNECT_ARGS = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "brainq",
    "client_encoding": "utf8",
}
OTHER_HOST_S = "2"  # connect_timeout if there are several hosts; psycopg knows no shorter one
IDLE_IN_TRANSACTION_S = 60.0  # after this the server ends the transaction and releases its locks


def _require_encoding(connection: Any) -> None:
    """Raise SetupError if the database's encoding is SQL_ASCII, which means none.

    The server reports the encoding when a connection is opened, so this costs no query.
    """
    if (encoding := connection.pgconn.parameter_status(b"server_encoding")) == b"SQL_ASCII":
        name = connection.info.dbname
        connection.close()
        raise SetupError(
            f"the database {name!r} has the encoding {encoding.decode()}, which cannot store every language; create a "
            "database with CREATE DATABASE brainq ENCODING 'UTF8' TEMPLATE template0, and set BRAINQ_SQL_URL to it"
        )


class NoAnswer(psycopg.OperationalError):
    """An error of a statement whose answer did not come in time."""

    is_silence = True


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a `PostgresLink`.

    answer_s    seconds to wait for an answer before the connection is closed; None for no limit
    begin       the statement that begins a transaction
    was_primary whether the server accepted writes when the connection was opened
    """

    answer_s: float | None = None
    begin: str = "BEGIN"
    was_primary: bool = False
    link: PostgresLink

    @property
    def is_demoted(self) -> bool:
        """Whether the server has announced that it no longer accepts writes. This costs no query (Postgres 14)."""
        return self.was_primary and not self.closed and reports_read_only(self)

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait like psycopg's connection, but raise OperationalError if no answer comes in time."""
        limit_s = self.answer_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit_s)
        except _WaitTimeout as late:
            if timeout is not None:
                raise
            self.pgconn.finish()  # a late answer must not be read as the answer to the next statement
            raise NoAnswer(f"the server did not answer within {limit_s:g} s") from late


def reports_read_only(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has announced that it is a standby, or that transactions are read-only."""
    names = (b"in_hot_standby", b"default_transaction_read_only")
    return b"on" in map(connection.pgconn.parameter_status, names)


def put_first(options: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    """Return connect options in which the host at this place is tried before the others. Pure."""
    hosts, ports = (str(options.get(name, "")).split(",") for name in ("host", "port"))
    if place == 0 or len(ports) != len(hosts) or "hostaddr" in options:
        return options
    turned = (",".join([*values[place:], *values[:place]]) for values in (hosts, ports))
    return {**options, **dict(zip(("host", "port"), turned, strict=True))}


def _place_of(connection: psycopg.Connection[Any], options: Mapping[str, Any]) -> int:
    hosts, ports = (str(options.get(name, "")).split(",") for name in ("host", "port"))
    pairs = list(zip(hosts, ports, strict=False))
    found = (connection.info.host, str(connection.info.port))
    return pairs.index(found) if found in pairs else 0


class PostgresLink:
    """The connection settings of one engine. The host that was connected to last is tried first.

    pooled         whether a pooler in transaction mode is in front of Postgres; None to detect it at each connect
    by_statement   False if the URL itself limits the time of statements
    """

    def __init__(self, answer_s: float | None, *, by_statement: bool, pooled: bool | None) -> None:
        self._answer_s = answer_s
        self.pooled = pooled
        self._place = 0
        self._settings: dict[str, int] = {}
        if answer_s is not None:
            self._settings["idle_in_transaction_session_timeout"] = round(IDLE_IN_TRANSACTION_S * 1000)
            if by_statement:
                self._settings["statement_timeout"] = round(answer_s * 750)

    def connect(self, *args: Any, **options: Any) -> BoundedConnection:
        """Connect as psycopg does."""
        connection: Any = BoundedConnection.connect(*args, **put_first(options, self._place))
        _require_encoding(connection)
        self._place = _place_of(connection, options)
        connection.link = self
        connection.was_primary = not reports_read_only(connection)
        connection.autocommit = True
        connection.answer_s = self._answer_s
        if self.pooled is None and not self._limit_session(connection):
            self.note_pooler("a server of the SQL URL is not of the kind that the URL requires")
        if self.pooled:
            connection.begin = "; ".join(
                ("BEGIN", *(f"SET LOCAL {name} = {ms}" for name, ms in self._settings.items()))
            )
            connection.prepare_threshold = None
        elif self.pooled is False:
            self._limit_session(connection)
        return connection

    def note_pooler(self, why: str) -> None:
        """Make connections for a pooler in transaction mode from now on."""
        if not self.pooled:
            self.pooled = True
            log.info(
                "SQL is behind a pooler, so statements are not prepared and settings are local to transactions", why=why
            )

    def _limit_session(self, connection: Any) -> bool:
        """Set the time limits of the session, unless a pooler answered the connect with its own process id.

        Returns False, without having set anything, in that case.
        """
        pid = connection.pgconn.backend_pid
        same = "true" if self.pooled is False else f"pg_backend_pid() = {pid}"
        settings = "".join(
            f", CASE WHEN {same} THEN set_config('{name}', '{ms}', false) END" for name, ms in self._settings.items()
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {same}{settings}".encode())
            return bool(cursor.fetchone()[0])
