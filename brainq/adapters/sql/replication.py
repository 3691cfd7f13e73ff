"""Read which Postgres host is the primary, and how its standbys follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.runtime.text.service_url import host_in_url

ServerRole = Literal["primary", "read-only", "standby", "away"]
_ROLE = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
# Without pg_monitor a user sees that there are standbys, but not their states.
_STANDBYS = (
    "SELECT application_name, state, sync_state, "
    "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), extract(epoch FROM coalesce(replay_lag, '0')) "
    "FROM pg_stat_replication ORDER BY application_name, pid"
)


@dataclass(frozen=True, slots=True)
class PostgresHost:
    """A host of a SQL URL. `why` is the driver's message if it is `away`."""

    name: str
    role: ServerRole
    why: str = ""

    @property
    def summary(self) -> str:
        match self.role:
            case "primary":
                return f"host {self.name} is the primary"
            case "standby":
                return f"host {self.name} is a standby in recovery"
            case "read-only":
                return f"host {self.name} is set to default_transaction_read_only"
            case "away":
                return f"host {self.name} does not answer ({self.why})"


@dataclass(frozen=True, slots=True)
class Standby:
    """A standby as its primary sees it.

    sync       `sync`, `quorum`, `potential` or `async`; None if this user may not read it
    behind     the bytes of the log that it has not replayed; None if this is unknown
    lag_s      how long it took to replay the last commit, in seconds; None if this is unknown
    """

    name: str
    state: str | None
    sync: str | None
    behind: int | None
    lag_s: float | None

    @property
    def is_synchronous(self) -> bool:
        """Whether commits wait for this standby, alone or among others."""
        return self.sync in ("sync", "quorum")


@dataclass(frozen=True, slots=True)
class Replication:
    """How a primary is replicated. `names` and `commits` are its synchronous_standby_names and synchronous_commit."""

    names: str
    commits: str
    standbys: tuple[Standby, ...]


def read_hosts(url: str) -> list[PostgresHost]:
    """Return the role of each host of a Postgres URL, by a connection to each. An unreachable host is `away`."""
    parsed = parse_sql_url(url)
    given: Mapping[str, Any] = make_engine(url).dialect.create_connect_args(parsed.url)[1]
    args = {name: value for name, value in given.items() if name not in ("host", "port", "context")}
    args |= {"target_session_attrs": "any", "connect_timeout": args.get("connect_timeout", "2")}
    return [_read_host(host, port, args) for host, port in parsed.hosts]


def _read_host(host: str, port: str, args: dict[str, Any]) -> PostgresHost:
    from psycopg import Error, connect

    name = f"{host_in_url(host)}:{port}" if port else host or "localhost"
    place: dict[str, Any] = {key: value for key, value in (("host", host), ("port", port)) if value}
    try:
        with connect(**args, **place, autocommit=True) as connection:
            found: Any = connection.execute(_ROLE).fetchone()
    except Error as error:
        return PostgresHost(name, "away", str(error).strip().partition("\n")[0])
    is_standby, is_read_only = found
    return PostgresHost(name, "standby" if is_standby else "read-only" if is_read_only else "primary")


def read_replication(url: str) -> Replication | None:
    """Return how the Postgres that a URL leads to is replicated. Returns None for SQLite and for a standby."""
    if parse_sql_url(url).url.drivername == "sqlite":
        return None
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            if connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar():
                return None
            names, commits = (
                str(connection.exec_driver_sql(f"SHOW {name}").scalar())
                for name in ("synchronous_standby_names", "synchronous_commit")
            )
            rows = connection.exec_driver_sql(_STANDBYS).all()
    finally:
        engine.dispose()
    return Replication(names, commits, tuple(_standby(*row) for row in rows))


def _standby(name: str, state: str | None, sync: str | None, behind: Any, lag_s: Any) -> Standby:
    if state is None:
        return Standby(name, None, None, None, None)
    return Standby(name, state, sync, None if behind is None else int(behind), float(lag_s))
