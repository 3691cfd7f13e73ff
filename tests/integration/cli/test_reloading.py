"""`dev --reload`: which changed files start what again."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from brainq.cli.dev.reload import Reloader
from tests.support.wait import wait_until

APP = """
from brainq import Brain
import tools

brain = Brain("b", "offline:rules")
"""


class Started:
    """Stands in for the fleet, and for a gateway: counts how often they were started again."""

    def __init__(self) -> None:
        self.workers = [SimpleNamespace(is_ready=True, launch=self.launch)]
        self.launched = 0
        self.is_ready = True

    def launch(self, *_: object) -> None:
        self.launched += 1

    def stop(self, *_: object) -> None:
        return None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRAINQ_APP", "app:brain")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    write("app.py", APP)
    write("tools.py", "def late():\n    import called_late\n")
    write("called_late.py", "")
    write("strange.py", "")
    return write


def test_only_files_that_are_imported_start_anything_again(tmp_path: Path, project: Callable[[str, str], None]) -> None:
    fleet, gateway, out = Started(), Started(), StringIO()
    reloader = Reloader(cast("Any", fleet), [cast("Any", gateway)], Console(file=out, width=200))

    def changed(name: str, text: str) -> None:
        project(name, text)
        wait_until(lambda: str(tmp_path / name) in reloader.pending, f"{name} was seen", 30)
        reloader.restart_if_changed()

    with reloader.watching(tmp_path):
        changed("strange.py", "x = 1\n")
        assert (fleet.launched, gateway.launched, out.getvalue()) == (0, 0, "")
        changed("called_late.py", "x = 1\n")
        assert (fleet.launched, gateway.launched) == (1, 1)
        assert "called_late.py changed; restarting" in out.getvalue()
        changed("tools.py", "this is no Python\n")
        assert fleet.launched == 1
        assert "tools.py changed, but the brain does not load; the workers keep the old code" in out.getvalue()
        changed("tools.py", "import strange\n")
        assert fleet.launched == 2
        changed("strange.py", "x = 2\n")
        assert (fleet.launched, gateway.launched) == (3, 3)
