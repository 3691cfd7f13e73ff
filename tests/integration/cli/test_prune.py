"""`brainq db prune`, as it is typed."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from brainq.cli.commands.db import parse_age_s
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.errors import ExitCode, InvalidInput
from tests.integration.cli.test_turns import end_in_sql
from tests.support.commands import Brainq


@pytest.fixture
def old_turns(client: Client) -> list[str]:
    """Three turns of long ago, and one that is live."""
    store = wiring_of(client).store
    old = [client.submit("s1", f"hello {number}").turn_id for number in range(3)]
    for turn_id in old:
        end_in_sql(store, turn_id, "s1")
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE turns SET ended_at = '2020-01-01', accepted_at = '2020-01-01'"))
        connection.execute(text("UPDATE finalizer_steps SET updated_at = '2020-01-01'"))
    live = client.submit("s2", "and you?")
    store.messages.log_user(store.turns.request(live.turn_id) or pytest.fail("it is there"), redact=False)
    return old


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("age", "seconds"), [("90m", 5400), ("12h", 43_200), (" 30d ", 2_592_000), ("8w", 4_838_400), ("1.5h", 5400)]
)
def test_ages(age: str, seconds: float) -> None:
    assert parse_age_s(age) == seconds


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "30 days", "1e3d", "30D", "\u0663d", "9" * 9 + "d"])
def test_what_is_no_age_is_named_with_the_remedy(brainq: Brainq, age: str) -> None:
    with pytest.raises(InvalidInput, match="such as 90m, 12h, 30d"):
        parse_age_s(age)
    ran = brainq("db", "prune", f"--older-than={age}", "--yes")
    assert (ran.code, "--older-than" in ran.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(("age", "remedy"), [("5m", "the minimum is 1h"), ("5001w", "the maximum is 5000w")])
def test_ages_beyond_reason_are_refused(brainq: Brainq, age: str, remedy: str) -> None:
    ran = brainq("db", "prune", "--older-than", age, "--yes")
    assert ran.code == ExitCode.USAGE
    assert remedy in ran.err


def test_the_greatest_age_is_one(brainq: Brainq, client: Client, old_turns: list[str]) -> None:
    assert brainq("db", "prune", "--older-than", "5000w", "--yes").code == 0
    assert len(wiring_of(client).store.turns.list()) == 4


def test_a_dry_run_counts_and_deletes_nothing(brainq: Brainq, client: Client, old_turns: list[str]) -> None:
    ran = brainq("db", "prune", "--older-than", "30d", "--dry-run")
    assert ran.code == 0
    assert ["turns", "3"] in [line.split() for line in ran.out.splitlines()]
    assert "3 turns would be deleted; nothing was deleted" in ran.err
    assert json.loads(brainq("db", "prune", "--older-than", "30d", "--dry-run", "--json").out)["deleted"] is False
    assert len(wiring_of(client).store.turns.list()) == 4


def test_old_turns_go_and_the_rest_stays(brainq: Brainq, client: Client, old_turns: list[str]) -> None:
    ran = brainq("db", "prune", "--older-than", "30d", "--yes")
    assert ran.code == 0
    assert "3 turns deleted, 6 rows in all" in ran.err
    assert "VACUUM" in ran.err
    assert len(wiring_of(client).store.turns.list()) == 1
    assert brainq("show", old_turns[0]).code == ExitCode.NOT_FOUND
    again = brainq("db", "prune", "--older-than", "30d", "--yes")
    assert (again.code, again.out) == (0, "")
    assert "no turn ended more than 30d ago" in again.err
    assert json.loads(brainq("db", "prune", "--older-than", "1h", "-y", "--memories", "--json").out) == {
        "deleted": True,
        "rows": dict.fromkeys(
            (
                *("turns", "messages", "calls", "decisions", "finalizer_steps", "spends", "traces"),
                *("transcripts", "judgements", "memories", "observations", "inputs", "approvals", "brakes"),
                *("deliveries", "attachments", "blobs", "schedules"),
            ),
            0,
        ),
    }


def test_a_database_that_is_not_there_is_not_made(
    brainq: Brainq, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "else" / "where.db"
    monkeypatch.setenv("BRAINQ_SQL_URL", f"sqlite:///{missing}")
    ran = brainq("db", "prune", "--older-than", "30d", "--yes")
    assert ran.code == ExitCode.SETUP
    assert str(missing) in ran.err.replace("\n", "")
    assert not missing.parent.exists()


def test_an_old_schema_is_not_migrated_by_the_way(
    brainq: Brainq, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    monkeypatch.setenv("BRAINQ_SQL_URL", f"sqlite:///{empty}")
    ran = brainq("db", "prune", "--older-than", "30d", "--yes")
    assert ran.code == ExitCode.SETUP
    assert "brainq db upgrade" in ran.err
    with sqlite3.connect(empty) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_without_a_terminal_it_must_be_said(brainq: Brainq, client: Client, old_turns: list[str]) -> None:
    ran = brainq("db", "prune", "--older-than", "30d")
    assert ran.code == ExitCode.USAGE
    assert "add --yes" in ran.err
    assert len(wiring_of(client).store.turns.list()) == 4


@pytest.mark.parametrize(("said", "left"), [("n\n", 4), ("y\n", 1)])
def test_in_a_terminal_it_asks(
    brainq: Brainq, client: Client, old_turns: list[str], monkeypatch: pytest.MonkeyPatch, said: str, left: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(said))
    ran = brainq("db", "prune", "--older-than", "30d")
    assert ran.code == 0
    assert "Delete these 6 rows permanently?" in ran.err
    assert ("nothing was deleted" in ran.err) is (left == 4)
    assert len(wiring_of(client).store.turns.list()) == left
