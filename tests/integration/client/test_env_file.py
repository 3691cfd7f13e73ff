"""A client made in Python begins as every command does: with `.env` of the working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainq import BrainNotLoaded, Client, Operator
from brainq.runtime.settings.environment import TYPED_OPTIONS

KEY = "ENV_SHOP_KEY"
BRAIN = f"""
import os
from brainq import Brain
brain = Brain("env-shop", "offline:rules", os.environ["{KEY}"])
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("BRAINQ_APP", "BRAINQ_SQL_URL", "BRAINQ_REDIS_URL", KEY):
        monkeypatch.setenv(name, "")  # put back afterwards, whatever the file does
        monkeypatch.delenv(name)
    yield tmp_path
    for name in ("env_shop", "app"):
        sys.modules.pop(name, None)


def test_it_reads_the_file_and_what_is_set_already_wins(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "env_shop.py").write_text(BRAIN)
    (here / ".env").write_text(f"BRAINQ_APP=env_shop:brain\nBRAINQ_SQL_URL=sqlite:///{here}/of-the-file.db\n{KEY}=k\n")
    with Client() as client:
        assert client.brains == ("env-shop",)
    assert os.environ[KEY] == "k"
    monkeypatch.setenv("BRAINQ_SQL_URL", f"sqlite:///{here}/set.db")
    monkeypatch.setenv("BRAINQ_REDIS_URL", "redis://127.0.0.1:1/0")
    (here / "set.db").touch()
    with Operator() as operator:
        assert operator.turns() == ()
    assert (here / "set.db").stat().st_size
    assert not (here / "of-the-file.db").exists()


def test_without_a_brain_it_says_that_none_was_named(here: Path) -> None:
    with pytest.raises(BrainNotLoaded) as refused:
        Client()
    told = str(refused.value)
    assert told.startswith("no brain was named, and the default, 'app:brain': there is no module 'app'")
    for remedy in (str(here), "BRAINQ_APP=module:attr", ".env", "Client(brain=...)"):
        assert remedy in told


def test_a_brain_that_was_named_is_told_by_who_named_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_APP", "no_shop:brain")
    monkeypatch.setitem(TYPED_OPTIONS, "BRAINQ_APP", "-A another:brain")  # of a command that this process ran before
    with pytest.raises(BrainNotLoaded, match="BRAINQ_APP='no_shop:brain': there is no module 'no_shop'"):
        Client()
