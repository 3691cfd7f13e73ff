"""`brainq` commands in this process, on a real Redis and SQLite, without workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from brainq.client.client import Client
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedProvider, says
from brainq.runtime.settings.deployment import Settings
from tests.support.commands import Brainq, commands
from tests.support.pump import sqlite_url

BRAIN = """
from brainq import Brain, Effect, ScriptedProvider
from brainq.engine.models.scripted import says

brain = Brain("cli", ScriptedProvider([says("Done.")]))


@brain.tool(effect=Effect.READ_ONLY)
def look() -> str:
    "Look."
    return "nothing"
"""


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
    return commands(monkeypatch, capsys)
