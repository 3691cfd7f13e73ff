"""Postgres connections that do not wait for ever for a server that is gone without a word, and that share a pooler's
servers with strangers.

A connection whose other end vanished (a failed-over host, a firewall that forgot it) takes what is sent and never
answers. The kernel finds that where packets are lost; where something in between takes them, only the wait can end.

A pooler in transaction mode (PgBouncer, and what Supabase, Neon, Cloud SQL and RDS Proxy offer) gives each transaction
whichever server is free. A prepared statement or a setting of a session would be left on a server that another client
gets next. Behind one, nothing is prepared, and settings are made within a transaction.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]

from brainq.errors import SetupError
from brainq.observe.logs import logger

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
IDLE_IN_TRANSACTION_S = 60.0  # then the server ends it, and what it had locked is free


def _require_encoding(connection: Any) -> None:
    """Raise SetupError for a database that keeps bytes of any encoding. The server has told it at the connect."""
    if (encoding := connection.pgconn.parameter_status(b"server_encoding")) == b"SQL_ASCII":
        name = connection.info.dbname
        connection.close()
        raise SetupError(
            f"the database {name!r} has the encoding {encoding.decode()}, which keeps no text of all languages; make "
            f"one by CREATE DATABASE brainq ENCODING 'UTF8' TEMPLATE template0, and put it into BRAINQ_SQL_URL"
        )


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of one `PostgresLink`.

    answer_s: how long it waits for an answer before it is closed. None: for ever.
    begin: how a transaction is begun on it.
    """

    answer_s: float | None = None
    begin: str = "BEGIN"
    link: PostgresLink

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg's. Raises OperationalError when no answer came in time."""
        limit_s = self.answer_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit_s)
        except _WaitTimeout as late:
            if timeout is not None:
                raise
            self.pgconn.finish()  # half an answer may come later, and must not be read as the next one
            raise psycopg.OperationalError(f"the server did not answer within {limit_s:g} s") from late


class PostgresLink:
    """How one engine connects, and whether a pooler in transaction mode is between.

    pooled       None: it is found out at each connect
    by_statement False: the URL limits statements itself
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
            self.note_pooler("its servers are not those that it says")
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
            log.info("SQL is behind a pooler: nothing is prepared or set for a session", why=why)

    def _limit_session(self, connection: Any) -> bool:
        """Set the limits for the session, if its server is the one that answered the connect. A pooler answers by
        itself, with a number of its own: then this returns False, and nothing is set, in the same statement."""
        pid = connection.pgconn.backend_pid
        same = "true" if self.pooled is False else f"pg_backend_pid() = {pid}"
        settings = "".join(
            f", CASE WHEN {same} THEN set_config('{name}', '{ms}', false) END" for name, ms in self._settings.items()
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {same}{settings}".encode())
            return bool(cursor.fetchone()[0])
