"""docs/operate/backup.md: a copy of SQL and an empty Redis are enough to go on, and no write is made twice."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.sql.store import Store
from brainq.client.handle import TurnHandle
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from tests.support.people import awaits, brain_of, swept_until
from tests.support.postgres import postgres_binary, postgres_url
from tests.support.pump import Pump, sqlite_url

ROOT = Path(__file__).parents[3]

SCRIPTS = {
    "ends": [calls(("note", {"name": "a"}))],
    "wrote": [calls(("note", {"name": "b"})), calls(("write", {"name": "b"}))],
    "asks": [calls(("write", {"name": "c"}))],
    "waits": [calls(("note", {"name": "d"}))],
}


def replies(request: ModelRequest) -> ModelReply:
    """By the turn's own message: its calls, one a step, and then its name."""
    said = [message.content for message in request.messages if message.role == "user"][-1]
    script = SCRIPTS[said]
    return script[request.step - 1] if request.step <= len(script) else says(f"{said}: done")


@dataclass(frozen=True)
class Database:
    """A database with brainq's tables, and how its page has it copied: `copied` gives the url of the restored copy."""

    url: str
    copied: Callable[[], str]


@contextmanager
def sqlite_database(directory: Path) -> Generator[Database]:
    """SQLite's own backup copies it, while it is open and in WAL mode."""

    def copied() -> str:
        with closing(sqlite3.connect(directory / "brainq.db")) as live, closing(sqlite3.connect(copy)) as to:
            live.backup(to)
        return f"sqlite:///{copy}"

    copy = directory / "copy.db"
    yield Database(sqlite_url(directory), copied)


def page_line(command: str) -> str:
    """The line of docs/operate/backup.md that begins with this command."""
    (line,) = re.findall(rf"^{command} .*$", (ROOT / "docs/operate/backup.md").read_text(), re.MULTILINE)
    return line


@contextmanager
def postgres_database(directory: Path) -> Generator[Database]:
    """The page's own lines copy it, and restore the copy into an empty database."""
    with postgres_url() as url, postgres_url() as empty:

        def run(command: str, url: str) -> None:
            path = f"{postgres_binary(command).parent}:{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path, "BRAINQ_SQL_URL": url}
            subprocess.run(["bash", "-ec", page_line(command)], cwd=directory, env=environment, check=True, timeout=60)

        def copied() -> str:
            run("pg_dump", url)
            run("pg_restore", empty)
            return empty

        Store.open(url).close()
        yield Database(url, copied)


DATABASES: dict[str, Callable[[Path], AbstractContextManager[Database]]] = {
    "sqlite": sqlite_database,
    "postgres": postgres_database,
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with DATABASES[request.param](tmp_path) as made:
        yield made


def again(pump: Pump, handle: TurnHandle) -> TurnHandle:
    """The same turn as a client of the restored deployment has it."""
    return pump.client.handle(handle.turn_id)


def test_a_copy_of_sql_and_an_empty_redis_are_enough(database: Database, redis_url: str) -> None:
    ran: list[str] = []
    brain = brain_of(ScriptedProvider(rules=replies), ran, approval="It changes things.")
    with Pump(brain, redis_url, database.url, owner="first") as pump:
        ended = pump.submit("s1", "ends")
        assert pump.finish(ended).text == "ends: done"
        wrote, parked = pump.submit("s2", "wrote"), pump.submit("s3", "asks")
        pump.drain()
        queued = pump.submit("s3", "waits")
        pump.drain()
        assert (awaits(wrote), awaits(parked)) == ("parked people", "parked people")
        assert ran == ["note a", "note b"]
        copy = database.copied()
        redis: Any = pump.wiring.state.redis
        redis.flushall()
    with Pump(brain, redis_url, copy, owner="restored") as restored:
        assert again(restored, ended).result(timeout_s=1).text == "ends: done"
        assert restored.wiring.sweeper.checks.lost_turns.compare(0).healed == 3

        lost = restored.finish(again(restored, wrote))
        assert (lost.ending, lost.stop_reason) == (Ending.FAILED, StopReason.LOST)
        assert "begun to write" in (lost.error or "")

        rebuilt = again(restored, parked)
        swept_until(restored, lambda: restored.drain() or awaits(rebuilt) == "parked people", "it asks again")
        (asked,) = rebuilt.approvals()
        assert ran == ["note a", "note b"]
        assert restored.client.approve(asked.id)
        assert restored.finish(rebuilt).text == "asks: done"
        assert restored.finish(again(restored, queued)).text == "waits: done"
        assert ran == ["note a", "note b", "write c", "note d"]
