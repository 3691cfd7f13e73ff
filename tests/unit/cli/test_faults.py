"""A disk that is full and a place that takes no files are no bugs in brainq."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from brainq.cli import waiting
from brainq.cli.commands import submit
from brainq.cli.main import describe_error
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.errors import ExitCode, ResultTimeout, Unreachable


def no_note(*_: Any) -> None:
    """No worker is looked for."""


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "is on a disk that is full"),
        (errno.EROFS, "cannot be written (Read-only file system); set BRAINQ_DATA_DIR"),
        (errno.EACCES, "cannot be written (Permission denied)"),
        (errno.ENOTDIR, "cannot be written (Not a directory)"),
    ],
)
def test_what_the_file_system_refuses_is_one_sentence(number: int, words: str) -> None:
    said, code = describe_error(OSError(number, os.strerror(number), "/data/.brainq/logs"))
    assert said.startswith(f"/data/.brainq/logs {words}")
    assert code is ExitCode.SETUP
    assert "bug" not in said


def test_sqlites_own_words_are_kept() -> None:
    said, code = describe_error(sqlite3.OperationalError("database or disk is full"))
    assert said.startswith("SQLite reports: database or disk is full; check")
    assert code is ExitCode.SETUP


def test_a_redis_that_goes_away_in_the_middle_is_one_sentence() -> None:
    said, code = describe_error(redis.ConnectionError("Connection closed by server."))
    assert said == (
        "the connection to Redis was lost (ConnectionError: Connection closed by server); turns continue when "
        "it is restored; run `brainq doctor` to check it"
    )
    assert code is ExitCode.SETUP
    assert "went away" not in describe_error(redis.ResponseError("OOM command not allowed"))[0]


@pytest.mark.parametrize("follow", [True, False])
def test_an_outage_in_the_middle_of_a_wait_says_that_the_turn_was_accepted(
    monkeypatch: pytest.MonkeyPatch, follow: bool
) -> None:
    """Who reads only that the same may be asked again submits it a second time."""

    def away(*_: Any) -> Any:
        raise Unreachable("Redis does not answer; the same may be asked again when it is back")

    def accept(*_: Any) -> Any:
        return SimpleNamespace(turn_id="t1", joined=None, events=away, result=away)

    monkeypatch.setattr(submit, "note_older_workers", no_note)
    monkeypatch.setattr(submit, "open_client", lambda: nullcontext(SimpleNamespace(submit=accept)))
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.0)
    monkeypatch.setattr(waiting, "AGAIN_S", 0.0)
    with pytest.raises(Unreachable, match=r"Turn t1 was accepted .* `brainq tail t1`"):
        submit.submit_and_wait("s1", "hi", {}, True, follow, None, False)


@pytest.mark.parametrize("follow", [True, False])
def test_a_short_outage_ends_no_wait_and_shows_no_event_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], follow: bool
) -> None:
    outages = [Unreachable("Redis does not answer")] * 2
    done = TurnResult(
        turn_id="t1", session_id="s1", text="Done.", ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED
    )

    def result(_: float | None) -> TurnResult:
        if outages:
            raise outages.pop()
        return done

    def events(after: int, _: float | None) -> Iterator[TurnEvent]:
        for seq in range(after + 1, 4):
            if seq == 2 and outages:
                raise outages.pop()
            yield TurnEvent(seq=seq, kind=EventKind.RESULT if seq == 3 else EventKind.TEXT_DELTA, at_ms=0, data={})

    def accept(*_: Any) -> Any:
        return SimpleNamespace(turn_id="t1", joined=None, created=True, events=events, result=result)

    monkeypatch.setattr(submit, "note_older_workers", no_note)
    monkeypatch.setattr(submit, "open_client", lambda: nullcontext(SimpleNamespace(submit=accept)))
    monkeypatch.setattr(waiting, "AGAIN_S", 0.0)
    assert submit.submit_and_wait("s1", "hi", {}, True, follow, None, True) is ExitCode.OK
    said = capsys.readouterr()
    note = "Redis does not answer; the turn continues, and this command waits until the service answers again"
    assert said.err.count(note) == 1
    assert said.out.count('"seq": 2') == follow


def test_a_wait_that_takes_long_says_once_what_the_turn_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pool may have no worker: then nothing else would be said for as long as the deadline is."""
    waits = [ResultTimeout("not yet")] * 3

    def result(_: float) -> TurnResult:
        if waits:
            raise waits.pop()
        return TurnResult(
            turn_id="t1", session_id="s1", text="Done.", ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED
        )

    def accept(*_: Any) -> Any:
        facts = {"snapshot": lambda: None, "explain": lambda: "it waits"}
        return SimpleNamespace(turn_id="t1", joined=None, created=True, result=result, **facts)

    monkeypatch.setattr(submit, "note_older_workers", no_note)
    monkeypatch.setattr(submit, "open_client", lambda: nullcontext(SimpleNamespace(submit=accept)))
    monkeypatch.setattr(waiting, "LONG_S", -1.0)
    assert submit.submit_and_wait("s1", "hi", {}, True, False, None, False) is ExitCode.OK
    assert capsys.readouterr().err.count("it waits; `brainq show t1`") == 1


def test_the_rest_is_a_bug() -> None:
    assert describe_error(ValueError("x"))[1] is ExitCode.BUG
