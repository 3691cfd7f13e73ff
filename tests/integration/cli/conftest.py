"""`brainq` commands in this process, on a real Redis and SQLite, without workers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from pydantic import SecretStr

from brainq.brain import Brain
from brainq.cli.main import main
from brainq.client.client import Client
from brainq.providers.scripted import ScriptedProvider, says
from brainq.settings import Settings
from tests.support.pump import sqlite_url

BRAIN = """
from brainq import Brain, Effect, ScriptedProvider
from brainq.providers.scripted import says

brain = Brain("cli", ScriptedProvider([says("Done.")]))


@brain.tool(effect=Effect.READ_ONLY)
def look() -> str:
    "Look."
    return "nothing"
"""


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Brainq = Callable[..., Ran]
# typer makes all commands anew for each command line, which takes longer than most commands.
_made = functools.cache(typer.main.get_command)


@pytest.fixture
def settings(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of an empty place, also in the environment; its brain is `cli_brain:brain`."""
    (tmp_path / "cli_brain.py").write_text(BRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BRAINQ_APP", "cli_brain:brain")
    monkeypatch.setenv("BRAINQ_REDIS_URL", redis_url)
    monkeypatch.setenv("BRAINQ_SQL_URL", "")
    monkeypatch.setenv("BRAINQ_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    sqlite_url(tmp_path)  # where the settings look for it: a copy, because migrating takes long
    return Settings(app="cli_brain:brain", redis_url=SecretStr(redis_url), data_dir=tmp_path)


@pytest.fixture
def no_database(settings: Settings) -> None:
    """The place is new: nobody has made its database."""
    (settings.data_dir / "brainq.db").unlink()


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    with Client(settings, Brain("cli", ScriptedProvider([says("Done.")]))) as client:
        yield client


@pytest.fixture
def brainq(settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Brainq:
    monkeypatch.setattr(typer.main, "get_command", _made)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["brainq", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as left:
            code = left.code
        printed = capsys.readouterr()
        return Ran(int(str(code or 0)), printed.out, printed.err)

    return run
