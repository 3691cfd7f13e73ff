"""The README's code runs, and a new project's tools are what they say."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect
from tests.support.pump import Pump
from tests.support.pumping import pumping

README = Path(__file__).parents[3] / "README.md"
PROJECT = README.parent / "brainq" / "cli" / "project"


def test_the_readmes_brain_asks_for_a_large_refund(pumps: Callable[..., Pump], tmp_path: Path) -> None:
    app, _ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "app.py").write_text(app)
    brain = runpy.run_path(str(tmp_path / "app.py"))["brain"]
    assert isinstance(brain, Brain)
    pump = pumps(brain)
    handle = pump.submit("monday", "find A1, refund A1 by 120")
    pump.drain()
    (approval,) = pump.client.approvals()
    assert (approval.tool, approval.reason) == ("refund", "a large refund")
    pump.client.approve(approval.id)
    assert "120 paid back for A1" in pump.finish(handle).text


def test_the_readmes_program_runs(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app, program = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "app"}
    exec(app, names)
    pump = pumps(names["brain"])
    for name in ("redis_url", "sql_url"):
        monkeypatch.setenv(f"BRAINQ_{name.upper()}", getattr(pump.settings, name).get_secret_value())
    with pumping(pump):
        exec(program.replace("Client()", "Client(brain=brain)"), {"brain": names["brain"]})
    assert "order A1 cost 120" in capsys.readouterr().out


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.read_text().splitlines()) < 150
    assert " · [" not in README.read_text()


def test_the_tools_of_a_new_project_share_their_stock_over_processes(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text((PROJECT / "app.py").read_text())
    brain = runpy.run_path(str(tmp_path / "app.py"))["brain"]
    assert isinstance(brain, Brain)
    assert {name: spec.effect for name, spec in brain.tools.specs.items()} == {
        "count": Effect.READ_ONLY,
        "restock": Effect.LOCAL_WRITE,
    }
    assert "ctx" not in brain.tools.specs["restock"].parameters["properties"]
    restocking = "from app import restock; from types import SimpleNamespace as Context; import sys\n"
    for key, after in (("k1", 8), ("k1", 8), ("k2", 13)):  # the same key is the same order
        code = f"{restocking}print(restock('apples', 5, Context(idempotency_key={key!r})))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == f"apples: now {after}\n"
        assert brain.tools["count"].function("apples") == after


def test_every_page_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    missing = [link for link in links if not link.startswith("http") and not (README.parent / link).exists()]
    assert links
    assert not missing
