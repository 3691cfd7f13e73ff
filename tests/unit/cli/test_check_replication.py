"""What `brainq doctor` shows of Postgres' hosts and standbys."""

from __future__ import annotations

import pytest

from brainq.adapters.sql.replication import PostgresHost, Replication, Standby
from brainq.cli.doctor.replication import FAR_BEHIND, hosts_check, replication_check

PRIMARY, STANDBY = PostgresHost("a:5432", "primary"), PostgresHost("b:5432", "standby")
AWAY = PostgresHost("b:5432", "away", "connection refused")
SYNC = Standby("b", "streaming", "sync", 0, 0.0)
ASYNC = Standby("b", "streaming", "async", 512, 0.25)
HIDDEN = Standby("b", None, None, None, None)


@pytest.mark.parametrize(
    ("hosts", "level", "said"),
    [
        ([PRIMARY, STANDBY], "ok", "host a:5432 is the primary; host b:5432 is a standby in recovery"),
        ([PRIMARY, AWAY], "warn", "host b:5432 does not answer (connection refused)"),
        ([PRIMARY, PostgresHost("b:5432", "primary")], "warn", "two servers accept writes"),
        ([PRIMARY, PostgresHost("b:5432", "read-only")], "warn", "default_transaction_read_only"),
    ],
)
def test_the_hosts_are_named_with_their_roles(hosts: list[PostgresHost], level: str, said: str) -> None:
    check = hosts_check(hosts)
    assert (check.level, said in check.said) == (level, True), check
    assert bool(check.remedy) == (level != "ok")


@pytest.mark.parametrize(
    ("found", "level", "said"),
    [
        (Replication("*", "on", (SYNC,)), "ok", "loses no accepted turn"),
        (
            Replication("ANY 1 (b)", "on", (Standby("b", "streaming", "quorum", 0, 0.0),)),
            "ok",
            "loses no accepted turn",
        ),
        (Replication("", "on", (ASYNC,)), "warn", "is asynchronous, 512 bytes behind (0.2 s): a failover loses"),
        (Replication("*", "local", (SYNC,)), "warn", "a failover loses"),
        (Replication("*", "on", (HIDDEN,)), "warn", "may not read"),
        (Replication("*", "on", ()), "warn", "every commit waits"),
        (Replication("*", "off", ()), "warn", "no standby is connected to the primary"),
        (Replication("", "on", ()), "warn", "no standby is connected to the primary"),
        (Replication("*", "on", (Standby("b", "streaming", "sync", FAR_BEHIND + 1, 9.0),)), "warn", "bytes behind"),
    ],
)
def test_what_a_failover_would_lose(found: Replication, level: str, said: str) -> None:
    check = replication_check(found, fails_over=True)
    assert check is not None
    assert (check.level, said in check.said) == (level, True), check


def test_a_url_with_one_host_expects_no_standby() -> None:
    assert replication_check(Replication("", "on", ()), fails_over=False) is None
    shown = replication_check(Replication("", "on", (ASYNC,)), fails_over=False)
    assert shown is not None
    assert shown.level == "ok", "a copy for reports is nothing to be warned of"
