"""docs/guides/testing.md: its tests pass, on a pump and as they stand."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pump import Pump
from tests.support.pumping import pumping

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "testing.md").read_text()


def written(directory: Path) -> None:
    for name in ("test_desk", "conftest"):
        blocks = re.findall(rf"```python\n# {name}\.py\n(.*?)```", PAGE, re.DOTALL)
        assert blocks
        (directory / f"{name}.py").write_text("\n\n".join(blocks))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    written(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("test_desk")


def test_the_pages_tests_of_a_tool_pass(desk: Any) -> None:
    desk.test_the_tool()
    desk.test_what_the_model_is_told()


def test_the_pages_test_of_a_turn_passes(pumps: Callable[..., Pump], desk: Any) -> None:
    pump = pumps(desk.scripted_brain)
    with pumping(pump):
        desk.test_a_turn(pump.client)


def test_the_page_as_it_stands_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    for name in ("BRAINQ_APP", "BRAINQ_REDIS_URL", "BRAINQ_SQL_URL", "BRAINQ_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
