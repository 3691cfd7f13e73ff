"""`brainq dev --cells`, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from brainq.cli.main import app
from brainq.contracts.cell import parse_cells
from brainq.contrib.cells.dev import names_of
from brainq.errors import InvalidInput


def test_cells_have_names_that_the_settings_take() -> None:
    cells = {name: f'{{"redis": "redis://{name}", "sql": "sqlite:///{name}"}}' for name in names_of(8)}
    text = ", ".join(f'"{name}": {servers}' for name, servers in cells.items())
    assert [cell.name for cell in parse_cells(f"{{{text}}}")] == list(names_of(8))


@pytest.mark.parametrize("option", ["--reload", "--flower", "--port=7001"])
def test_what_is_of_one_cell_does_not_go_with_several(option: str) -> None:
    failed = CliRunner().invoke(app, ["dev", "--cells", "2", option])
    assert isinstance(failed.exception, InvalidInput)
    assert "--cells" in str(failed.exception)


@pytest.mark.parametrize(
    "environment",
    [
        {"BRAINQ_REDIS_URL": "redis://h"},
        {"BRAINQ_CELLS": '{"a": {"redis": "redis://h", "sql": "sqlite:///x"}}'},
    ],
)
def test_it_brings_its_own_servers_and_says_so_where_others_are_configured(
    environment: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    failed = CliRunner().invoke(app, ["dev", "--cells", "2"])
    assert isinstance(failed.exception, InvalidInput)
    assert "BRAINQ_REDIS_URL" in str(failed.exception)
    assert list(tmp_path.iterdir()) == []
