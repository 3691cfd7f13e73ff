"""Settings: where they come from, and how a wrong one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Settings, load_settings


def test_the_environment_is_read_and_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_LEASE_S", "20")
    monkeypatch.setenv("BRAINQ_BEAT_S", "4")
    monkeypatch.setenv("BRAINQ_CONCURRENCY__SERIAL", "2")
    monkeypatch.setenv("BRAINQ_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("BRAINQ_REDIS_URL", "")
    settings = load_settings(beat_s=5)
    assert (settings.lease_s, settings.beat_s, settings.concurrency.serial) == (20, 5, 2)
    assert settings.log_level == "warning"
    assert settings.redis_url is None


def test_sqlite_sits_in_the_data_directory_unless_an_url_is_given(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path).sql_url.get_secret_value() == f"sqlite:///{tmp_path}/brainq.db"
    given = SecretStr("postgresql+psycopg://h/db")
    assert Settings(data_dir=tmp_path, sql_url=given).sql_url == given


def test_settings_are_frozen_and_mask_their_secrets() -> None:
    settings = Settings(redis_url=SecretStr("redis://:hunter2@h/0"), sql_url=SecretStr("postgresql://u:hunter2@h/db"))
    assert "hunter2" not in repr(settings) + str(settings) + settings.model_dump_json()
    with pytest.raises(ValidationError):
        settings.lease_s = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"beat_s": 5}, "BRAINQ_BEAT_S"),
        ({"sweep_s": 10}, "BRAINQ_SWEEP_S"),
        ({"lease_s": "soon"}, "BRAINQ_LEASE_S: "),
        ({"prefix": "no colon"}, "BRAINQ_PREFIX: "),
        ({"prefix": "a{b}:"}, "BRAINQ_PREFIX: "),
        ({"app": "just_a_module"}, "BRAINQ_APP: "),
        ({"redis_url": "http://hunter2@h"}, "BRAINQ_REDIS_URL: "),
        ({"broker_url": "http://hunter2@h"}, "BRAINQ_BROKER_URL: "),
        ({"broker_url": "amqp://hunter2@h"}, "BRAINQ_DOORBELL"),
        ({"doorbell": "loud"}, "BRAINQ_DOORBELL: "),
        ({"concurrency": {"serial": 0}}, "BRAINQ_CONCURRENCY__SERIAL: "),
        ({"leese_s": 3}, "BRAINQ_LEESE_S: "),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(given: dict[str, Any], named: str) -> None:
    with pytest.raises(SetupError) as raised:
        load_settings(**given)
    assert named in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(SetupError) as raised:
        load_settings(prefix="", keep_turn_s=0)
    assert len(str(raised.value).splitlines()) == 2


CELLS = '{"a": {"redis": "redis://:hunter2@a", "sql": "sqlite:////a.db"}, "b": {"redis": "redis://b", "sql": "sqlite:////b.db"}}'


def test_a_worker_has_its_cells_servers_and_any_other_process_those_of_home(tmp_path: Path) -> None:
    home, worker = load_settings(cells=CELLS), load_settings(cells=CELLS, cell="b")
    assert [cell.name for cell in home.all_cells()] == ["a", "b"]
    assert (home.cell, home.sql_url.get_secret_value()) == ("", "sqlite:////a.db")
    assert worker.redis_url == SecretStr("redis://b")
    assert worker.of_cell(worker.all_cells()[1]) == worker
    assert "hunter2" not in repr(home) + home.model_dump_json()
    file = tmp_path / "cells.json"
    file.write_text(CELLS)
    assert load_settings(cells=str(file)) == home


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"cells": CELLS, "cell": "c"}, "BRAINQ_CELL names"),
        ({"cell": "b"}, "BRAINQ_CELL names"),
        ({"cells": CELLS, "redis_url": "redis://hunter2"}, "BRAINQ_REDIS_URL differs"),
        ({"cells": CELLS, "cell": "b", "sql_url": "sqlite:////a.db"}, "BRAINQ_SQL_URL differs"),
        ({"cells": CELLS.replace("redis://b", "http://hunter2")}, "BRAINQ_CELLS: "),
        ({"cells": "/no/such/file"}, "BRAINQ_CELLS: "),
    ],
)
def test_wrong_cells_are_named_without_their_addresses(given: dict[str, Any], named: str) -> None:
    with pytest.raises(SetupError) as raised:
        load_settings(**given)
    assert named in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_worker_of_several_cells_says_which_it_serves() -> None:
    load_settings().require_cell()
    load_settings(cells=CELLS, cell="b").require_cell()
    with pytest.raises(SetupError, match="BRAINQ_CELL to the one"):
        load_settings(cells=CELLS).require_cell()
