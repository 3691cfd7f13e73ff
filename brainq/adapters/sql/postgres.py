"""Postgres connections with bounded waits, which also work behind a pooler in transaction mode.

A connection whose other end has vanished (a failed-over host, a firewall that dropped it) accepts data and never
answers. The kernel notices lost packets; if something in between still accepts them, only a timeout helps.

A pooler in transaction mode (PgBouncer, or the poolers of Supabase, Neon, Cloud SQL and RDS Proxy) runs each
transaction on whichever server process is free. A prepared statement or a session setting would stay on a server
process that the next client gets. Behind a pooler, therefore, nothing is prepared, and settings are local to a
transaction.
"""

from __future__ import annotations

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


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a `PostgresLink`.

    answer_s   seconds to wait for an answer before the connection is closed; None for no limit
    begin      the statement that begins a transaction
    """

    answer_s: float | None = None
    begin: str = "BEGIN"
    link: PostgresLink

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait like psycopg's connection, but raise OperationalError if no answer comes in time."""
        limit_s = self.answer_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit_s)
        except _WaitTimeout as late:
            if timeout is not None:
                raise
            self.pgconn.finish()  # a late answer must not be read as the answer to the next statement
            raise psycopg.OperationalError(f"the server did not answer within {limit_s:g} s") from late


class PostgresLink:
    """The connection settings of one engine.

    pooled         whether a pooler in transaction mode is in front of Postgres; None to detect it at each connect
    by_statement   False if the URL itself limits the time of statements
    """

    def __init__(self, answer_s: float | None, *, by_statement: bool, pooled: bool | None) -> None:
        self._answer_s = answer_s
        self.pooled = pooled
        self._settings: dict[str, int] = {}
        if answer_s is not None:
            self._settings["idle_in_transaction_session_timeout"] = round(IDLE_IN_TRANSACTION_S * 1000)
            if by_statement:
                self._settings["statement_timeout"] = round(answer_s * 750)

    def connect(self, *args: Any, **options: Any) -> BoundedConnection:
        """Connect as psycopg does."""
        connection: Any = BoundedConnection.connect(*args, **options)
        _require_encoding(connection)
        connection.link = self
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
