"""Postgres connections that do not wait for ever for a server that is gone without a word.

A connection whose other end vanished (a failed-over host, a firewall that forgot it) takes what is sent and never
answers. The kernel finds that where packets are lost; where something in between takes them, only the wait can end.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]

CONNECT_ARGS = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "brainq",
}
IDLE_IN_TRANSACTION_S = 60.0  # then the server ends it, and what it had locked is free


class BoundedConnection(psycopg.Connection[Any]):
    """`answer_s`: how long it waits for an answer before it is closed. None: for ever."""

    answer_s: float | None = None

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


def set_limits(connection: BoundedConnection, answer_s: float, *, by_statement: bool) -> None:
    """Bound the waits of a new connection, and what the server spends on a statement: three quarters of that."""
    connection.answer_s = answer_s
    statement = f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_S * 1000:.0f}"
    if by_statement:
        statement += f"; SET statement_timeout = {answer_s * 750:.0f}"
    with connection.cursor() as cursor:
        cursor.execute(statement.encode())
