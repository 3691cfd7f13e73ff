"""`brainq cassette TURN`: a real turn becomes a test that passes, without its secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import brainq
from brainq.client.operator import Operator
from brainq.errors import InvalidInput
from brainq.testing.cassette import cassette
from tests.support.commands import commands

KEY = "sk-live-4f9Qz81LmN0pXr7T"
APP = f'''
from brainq import Brain, Effect, ScriptedProvider, ToolError
from brainq.testing import calls, says

KEYS = (("A1", "{KEY}"), ("B2", "fish"))
brain = Brain("desk", ScriptedProvider([
    calls(*(("find", {{"order": order, "api_key": key}}) for order, key in KEYS), text="See."),
    calls(("refund", {{"order": "A1"}})),
    calls(("refund", {{"order": "B2"}})),
    says("Done. The password: hunter22 and '{KEY}'"),
]))


@brain.tool(effect=Effect.READ_ONLY)
def find(order: str, api_key: str) -> str:
    """Find an order."""
    if order == "B2":
        raise ToolError("there is no B2")
    return f"order A1, by {{api_key}}"


@brain.tool(effect=Effect.NETWORK, approval=True)
def refund(order: str) -> str:
    """Refund."""
    return "paid"
'''


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BRAINQ_APP", "desk_app:brain")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def test_a_turn_becomes_a_test(app: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    brainq_command = commands(monkeypatch, capsys)
    with brainq.local() as client:
        handle = client.submit("monday", f"Refund A1, my key is {KEY}")
        for decide in (client.approve, client.deny):
            handle.wait("people", 60)
            decide(next(each.id for each in handle.approvals() if each.state == "pending"))
        assert handle.result(60).ending == "completed"
        waiting = client.submit("tuesday", "Refund A1")
        waiting.wait("people", 60)
        with Operator() as operator:
            facts = operator.facts(waiting.turn_id)
        with pytest.raises(InvalidInput, match="has no result yet"):
            cassette(facts, "desk_app:brain")
        said = brainq_command("cassette", handle.turn_id, "-o", "test_played.py")
    assert said.code == 0
    text = (app / "test_played.py").read_text()
    assert KEY not in text
    assert "hunter22" not in text
    assert "fish" not in text
    assert "'api_key': '[hidden]'" in text
    (app / "desk_app.py").write_text(APP.replace('return "paid"', "raise SystemError"))  # no tool runs
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "test_played.py"],
        cwd=app,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, text + done.stdout + done.stderr
    assert "1 passed" in done.stdout
