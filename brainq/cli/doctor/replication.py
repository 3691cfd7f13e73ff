"""Check which Postgres host is the primary, and whether a failover would lose accepted turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brainq.adapters.sql.replication import PostgresHost, Replication, Standby, read_hosts, read_replication
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.app.wiring.preflight import Check, ok, warn

FAR_BEHIND = 16 * 1024 * 1024  # bytes: a segment of the log
_NO_WAIT = ("off", "local")


def check_replication(url: str) -> Iterator[Check]:
    """Check the hosts of a Postgres URL and the standbys of its primary. Yields nothing for SQLite."""
    replication = read_replication(url)
    if replication is None:
        return
    if has_several := len(parse_sql_url(url).hosts) > 1:
        yield hosts_check(read_hosts(url))
    if (found := replication_check(replication, fails_over=has_several)) is not None:
        yield found


def hosts_check(hosts: Sequence[PostgresHost]) -> Check:
    """Return whether one of several hosts is the primary and the others can take its place. Pure."""
    summary = "; ".join(host.summary for host in hosts)
    if sum(host.role == "primary" for host in hosts) > 1:
        return warn(
            "sql hosts",
            f"{summary}: two servers accept writes, and each has rows that the other does not have",
            "stop the old primary, and make it a standby of the new one (pg_rewind)",
        )
    if all(host.role in ("primary", "standby") for host in hosts):
        return ok("sql hosts", summary)
    return warn("sql hosts", summary, "start the host that is missing, or remove it from BRAINQ_SQL_URL")


def replication_check(found: Replication, *, fails_over: bool) -> Check | None:
    """Return what a failover would lose. Returns None if there is no standby, and none is expected. Pure.

    fails_over   whether the URL has several hosts
    """
    if not found.standbys:
        return _without_standbys(found, fails_over=fails_over)
    if all(standby.sync is None for standby in found.standbys):
        return warn(
            "replication",
            f"this user may not read the state of {len(found.standbys)} standbys",
            "GRANT pg_monitor TO its role, or look at pg_stat_replication or the service's console",
        )
    summary = "; ".join(map(_standby_summary, found.standbys))
    if not any(standby.is_synchronous for standby in found.standbys) or found.commits in _NO_WAIT:
        lost = f"{summary}: a failover loses what was not replicated, such as accepted turns"
        remedy = "set synchronous_standby_names and synchronous_commit = on: docs/operate/deploy.md"
        return warn("replication", lost, remedy) if fails_over or found.names else ok("replication", summary)
    if any((standby.behind or 0) > FAR_BEHIND for standby in found.standbys):
        return warn("replication", summary, "look for the cause: a slow standby delays commits or the failover")
    return ok("replication", f"{summary}: a failover loses no accepted turn")


def _without_standbys(found: Replication, *, fails_over: bool) -> Check | None:
    if found.names and found.commits not in _NO_WAIT:
        return warn(
            "replication",
            f"synchronous_standby_names is {found.names!r}, and no standby is connected: every commit waits",
            "start a standby; to continue without one, ALTER SYSTEM RESET synchronous_standby_names, and reload",
        )
    if not fails_over:
        return None
    return warn(
        "replication",
        "BRAINQ_SQL_URL has several hosts, but no standby is connected to the primary",
        "start the standby, or check its primary_conninfo",
    )


def _standby_summary(standby: Standby) -> str:
    kind = "synchronous" if standby.is_synchronous else "asynchronous"
    behind = "" if standby.behind is None else f", {standby.behind} bytes behind"
    lag = "" if standby.lag_s is None else f" ({standby.lag_s:.1f} s)"
    return f"standby {standby.name or 'without a name'} is {kind}{behind}{lag}"
