"""`brainq erase`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brainq.adapters.sql.erase import SqlErasure
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.errors import ExitCode
from tests.integration.cli.test_turns import end_in_sql
from tests.support.commands import Brainq


@pytest.fixture
def ended(client: Client) -> str:
    turn = client.submit("acme:1", "hello")
    end_in_sql(wiring_of(client).store, turn.turn_id, "acme:1")
    # No worker runs here: Redis is to know the turn no more, as after it has expired there.
    wiring_of(client).state.redis.flushall()
    return turn.turn_id


def test_what_went_is_printed_and_written_down(brainq: Brainq, ended: str, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    ran = brainq("erase", "--tenant", "acme:", "--by", "ticket 4711", "--receipt", str(receipt), "--yes")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "1 turn of acme: erased")
    assert "left   nothing" in ran.out
    kept = json.loads(receipt.read_text())
    assert (kept["scope"], kept["is_tenant"], kept["by"], kept["turns"], kept["left"]) == (
        *("acme:", True, "ticket 4711", 1),
        {},
    )
    assert ended not in receipt.read_text()
    again = json.loads(brainq("erase", "--tenant", "acme:", "--yes", "--json").out)
    assert (again["turns"], again["rows"]) == (0, {})
    assert brainq("show", ended).code == ExitCode.NOT_FOUND


def test_it_asks_and_where_nobody_can_answer_it_does_nothing(brainq: Brainq, ended: str) -> None:
    ran = brainq("erase", "--session", "acme:1")
    assert (ran.code, "add --yes" in ran.err) == (ExitCode.USAGE, True)
    assert brainq("show", ended).code == 0


def test_neither_and_both_are_wrong(brainq: Brainq) -> None:
    for arguments in ([], ["--session", "a", "--tenant", "a:"]):
        ran = brainq("erase", *arguments, "--yes")
        assert (ran.code, "give one of session and tenant" in ran.err) == (ExitCode.USAGE, True)


def test_something_left_is_an_error(brainq: Brainq, ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def some_left(_: SqlErasure) -> dict[str, int]:
        return {"memories": 1}

    monkeypatch.setattr(SqlErasure, "left", some_left)
    ran = brainq("erase", "--session", "acme:1", "--yes")
    assert (ran.code, "left   memories 1" in ran.out) == (ExitCode.FAILED, True)
