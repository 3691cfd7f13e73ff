"""SQL: locked by another, a Postgres that is read-only or in deadlocks, connections half open, a pooler killed."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path
from typing import Literal, LiteralString

from lab.faults.effects import wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.shortage import Shortage
from lab.faults.stage import Stage, no_pooler, no_postgres
from lab.faults.table.kills import hold_turn


class SqlLocked(Fault):
    name = "sql-locked"
    title = "the SQLite file locked by another for seconds"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.refused = 0

    def inject(self, stage: Stage) -> None:
        assert stage.servers.sql_file is not None
        lock = sqlite3.connect(stage.servers.sql_file, timeout=30.0, isolation_level=None)
        try:
            lock.execute("BEGIN IMMEDIATE")
            self.refused = int(_is_locked(stage.servers.sql_file))
            time.sleep(self.pace.outage_s)
        finally:
            lock.close()

    def fired(self, stage: Stage) -> int:
        return self.refused


def _is_locked(file: Path) -> bool:
    """Return whether a third connection cannot write."""
    other = sqlite3.connect(file, timeout=0.0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    else:
        return False
    finally:
        other.close()


class PostgresHalfOpen(Fault):
    name = "postgres-half-open"
    title = "connections to Postgres silent for seconds, and half open for good"
    kind = "postgres"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.silenced = 0

    @classmethod
    def why_not(cls) -> str:
        return no_postgres()

    def inject(self, stage: Stage) -> None:
        proxy = stage.servers.sql_proxy
        assert proxy is not None
        before = proxy.silenced
        proxy.go_silent()
        self.silenced = proxy.silenced - before
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        assert stage.servers.sql_proxy is not None
        stage.servers.sql_proxy.heal()

    def fired(self, stage: Stage) -> int:
        return self.silenced


class PoolerKill(Fault):
    name = "pooler-kill"
    title = "SIGKILL: PgBouncer in transaction mode, again and again; it is started after a second"
    kind = "pooler"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.killed = 0

    @classmethod
    def why_not(cls) -> str:
        return no_pooler()

    def inject(self, stage: Stage) -> None:
        assert stage.servers.pooler is not None
        for _ in range(self.pace.pieces):
            self.killed += stage.servers.pooler.kill() == -signal.SIGKILL
            time.sleep(1.0)
            stage.servers.pooler.start()
            time.sleep(0.5)

    def heal(self, stage: Stage) -> None:
        assert stage.servers.pooler is not None
        stage.servers.pooler.start()

    def fired(self, stage: Stage) -> int:
        return self.killed


class PostgresReadOnly(Shortage):
    name = "postgres-read-only"
    title = "Postgres read-only for seconds"
    kind = "postgres"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.refused = 0

    @classmethod
    def why_not(cls) -> str:
        return no_postgres()

    def inject(self, stage: Stage) -> None:
        before = stage.producer.submitted.refused
        _set_read_only(stage, "on")
        super().inject(stage)
        wait_for(lambda: stage.producer.submitted.refused > before, "a submit is refused", 60.0)
        self.refused = stage.producer.submitted.refused - before

    def give_back(self, stage: Stage) -> None:
        _set_read_only(stage, "off")

    def fired(self, stage: Stage) -> int:
        """Return how many submits were refused."""
        return self.refused


def _set_read_only(stage: Stage, to: Literal["on", "off"]) -> None:
    """Make every session read-only, including the open ones."""
    with stage.postgres() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {to}")
        connection.execute("SELECT pg_reload_conf()")


class PostgresDeadlock(Fault):
    name = "postgres-deadlock"
    title = "deadlocks in Postgres as the outcome of a write is recorded: it is brainq's transaction that is undone"
    kind = "postgres"
    completes = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.deadlocks = 0

    @classmethod
    def why_not(cls) -> str:
        return no_postgres()

    def inject(self, stage: Stage) -> None:
        before = _deadlocks(stage)
        for _ in range(self.pace.pieces):
            self._meet(stage)
        self.deadlocks = wait_for(lambda: max(0, _deadlocks(stage) - before), "Postgres counts the deadlocks", 30.0)

    def _meet(self, stage: Stage) -> None:
        """The row of a write that runs is locked; once its outcome waits for the row, the table is asked for, which
        that statement has."""
        turn = hold_turn(stage, "order")
        stage.effects.wait_seen("order", turn)
        with stage.postgres() as other, other.transaction():
            other.execute("SET LOCAL deadlock_timeout = '60s'")  # so that it is the other that is undone
            other.execute("SELECT 1 FROM calls WHERE turn_id = %s FOR UPDATE", (turn,))
            stage.effects.release()
            with stage.postgres() as watching:
                wait_for(lambda: watching.execute(WAITS).fetchone(), "an outcome waits for its row", 30.0)
            other.execute("LOCK TABLE calls IN SHARE MODE")

    def fired(self, stage: Stage) -> int:
        """Return how many deadlocks Postgres has counted."""
        return self.deadlocks


WAITS: LiteralString = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE calls%'"


def _deadlocks(stage: Stage) -> int:
    with stage.postgres() as connection:
        found = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'").fetchone()
    assert found is not None
    return int(found[0])
