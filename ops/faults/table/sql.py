"""SQL: locked by another, on a full disk, a Postgres whose connections are half open, and a pooler that is killed."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import time
from pathlib import Path

from ops.faults.effects import wait_for
from ops.faults.fault import Fault, Pace
from ops.faults.stage import Stage, no_pooler, no_postgres, no_small_disk

BLOCK = b"\0" * 65536


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
    """Whether a third cannot write."""
    other = sqlite3.connect(file, timeout=0.0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    else:
        return False
    finally:
        other.close()


class SqlFull(Fault):
    name = "sql-full"
    title = "the disk of the SQLite file full for seconds"
    kind = "small disk"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.refused = 0

    @classmethod
    def why_not(cls) -> str:
        return no_small_disk()

    def inject(self, stage: Stage) -> None:
        """Fill it, and wait until a submit was refused for it."""
        filler, before = self._filler(stage), stage.producer.submitted.refused
        with filler.open("wb", buffering=0) as out:
            end = time.monotonic() + self.pace.outage_s
            while time.monotonic() < end:
                _fill(out.fileno())  # again and again: SQLite gives room back when it checkpoints
                time.sleep(0.05)
            wait_for(lambda: stage.producer.submitted.refused > before, "a submit is refused", 60.0)
        self.refused = stage.producer.submitted.refused - before

    def heal(self, stage: Stage) -> None:
        self._filler(stage).unlink(missing_ok=True)

    def fired(self, stage: Stage) -> int:
        return self.refused

    def _filler(self, stage: Stage) -> Path:
        assert stage.servers.sql_file is not None
        return stage.servers.sql_file.with_name("filler")


def _fill(file: int) -> None:
    try:
        while True:
            os.write(file, BLOCK)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


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
