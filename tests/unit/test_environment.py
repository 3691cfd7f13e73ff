"""Mistyped names of settings, and what `.env` sets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Concurrency, Settings
from brainq.runtime.settings.environment import SETTINGS, WARNED_NAMES, mistyped_names, read_env_file


def test_the_names_are_those_of_the_settings() -> None:
    nested = {f"CONCURRENCY__{name.upper()}" for name in Concurrency.model_fields}
    assert set(SETTINGS) == {name.upper() for name in Settings.model_fields} | nested


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("BRAINQ_REDIS_URI", "BRAINQ_REDIS_URL"),
        ("BRAINQ_SQLURL", "BRAINQ_SQL_URL"),
        ("BRAINQ_LEESE_S", "BRAINQ_LEASE_S"),
        ("brainq_log_levl", "BRAINQ_LOG_LEVEL"),
        ("BRAINQ_CONCURRENCY_SERIAL", "BRAINQ_CONCURRENCY__SERIAL"),
    ],
)
def test_a_name_that_is_nearly_right_is_told_with_the_right_one(wrong: str, right: str) -> None:
    assert mistyped_names({wrong: "1", "PATH": "/bin"}) == [(wrong, right)]


def test_right_names_told_ones_and_those_of_others_are_left_alone() -> None:
    fine = {"BRAINQ_APP": "a:b", "brainq_lease_s": "1", "BRAINQ_EFFECTS": "network", "BRAINQ_TEST_DIR": "/tmp"}
    assert mistyped_names(fine) == []
    assert mistyped_names({"BRAINQ_LEESE_S": "1", WARNED_NAMES: "BRAINQ_LEESE_S"}) == []


def test_the_file_sets_what_is_not_set_and_nothing_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SET", "here")
    monkeypatch.setenv("EMPTY_KEY", "")
    monkeypatch.setenv("NOT_SET", "")  # put back afterwards
    monkeypatch.delenv("NOT_SET")
    (tmp_path / ".env").write_text("SET=there\nEMPTY_KEY=of-the-file\nNOT_SET=new\n")
    read_env_file()
    assert [os.environ[name] for name in ("SET", "EMPTY_KEY", "NOT_SET")] == ["here", "of-the-file", "new"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(b"KEY=\xff\n")
    with pytest.raises(SetupError, match=rf"{tmp_path}/.env cannot be read"):
        read_env_file()
