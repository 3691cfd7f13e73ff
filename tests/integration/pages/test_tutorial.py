"""docs/start/tutorial: each step's code runs, on top of the steps before, and does what its page says."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain
from brainq.app.access import Tokens, Verb
from brainq.contracts.status import TraceStatus
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.pumping import pumping

ROOT = Path(__file__).parents[3]
STEPS = {path.stem[0]: path.read_text() for path in (ROOT / "docs" / "start" / "tutorial").glob("[1-5]-*.md")}
_BLOCK = re.compile(r"```python\n# (\w+)\.py\n(.*?)```", re.DOTALL)


def blocks(step: str, module: str) -> str:
    return "\n\n".join(code for name, code in _BLOCK.findall(STEPS[step]) if name == module)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brain:
    """`app.py` as it stands after the last step, in the working directory."""
    (tmp_path / "app.py").write_text("\n\n".join(blocks(step, "app") for step in sorted(STEPS)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("app").brain


@pytest.fixture
def pump(pumps: Callable[..., Pump], desk: Brain, monkeypatch: pytest.MonkeyPatch) -> Pump:
    made = pumps(desk)
    monkeypatch.delenv("BRAINQ_APP", raising=False)  # app:brain is what is looked for where nothing is said
    for name in ("redis_url", "sql_url"):
        monkeypatch.setenv(f"BRAINQ_{name.upper()}", getattr(made.settings, name).get_secret_value())
    return made


def run(step: str, module: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(blocks(step, module), f"{module}.py", "exec"), names)
    return names


def test_every_step_is_there_and_leads_to_the_next() -> None:
    assert sorted(STEPS) == list("12345")
    for step in "1234":
        assert f"({int(step) + 1}-" in STEPS[step].splitlines()[-1]


def test_1_a_brain_with_one_tool_answers(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    with pumping(pump):
        run("1", "ask")
    assert capsys.readouterr().out.startswith("completed 2 find(order='A1') said: order A1 cost 120.0\n")


def test_2_a_refund_waits_for_a_person(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    with pumping(pump):
        run("2", "decide")
    out = capsys.readouterr().out
    assert out.startswith("refund {'order': 'A1', 'amount': 120.0}\n")
    assert "120 paid back for A1" in out
    assert Path("refunds.txt").read_text() == "A1 120\n"


def test_3_a_turn_is_followed_held_and_steered(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    with pumping(pump):
        run("3", "watch")
    out = capsys.readouterr().out
    assert "120 paid back for A1" in out
    assert "order B2 cost 15.5" in out
    numbers = [int(line.split()[0]) for line in out.splitlines() if re.match(r"\d+ \w+\.?\w*$", line)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {"hold.placed", "hold.released", "approval.decided"} <= set(re.findall(r"\d+ (\S+)", out))


def die_in_a_call(pump: Pump, message: str) -> tuple[str, TraceStatus]:
    """A turn whose first worker is killed in its tool; its text, and how its call stands."""
    handle = pump.submit("thursday", message)
    pump.drain("brainq.turns")
    urls = [getattr(pump.settings, name).get_secret_value() for name in ("redis_url", "sql_url")]
    died = subprocess.run(
        [sys.executable, "-m", "tests.support.one_queue", *urls, "brainq.tools.network"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path.cwd()}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    text = pump.finish(handle).text
    (entry,) = pump.wiring.state.calls.trace("thursday", handle.turn_id)
    return text, entry.status


def test_4_a_write_whose_worker_was_killed_is_unknown_and_not_run_again(pump: Pump) -> None:
    _, status = die_in_a_call(pump, "print_label A1")
    assert status is TraceStatus.UNKNOWN
    assert Path("labels.txt").read_text() == "A1\n"


def test_4_an_idempotent_write_is_run_again_with_its_key(pump: Pump) -> None:
    text, status = die_in_a_call(pump, "pay_carrier A1")
    assert status is TraceStatus.COMPLETED
    assert "paid for A1" in text
    first, second = Path("tries.txt").read_text().split()
    assert first == second == Path("paid-A1.txt").read_text()


def test_5_the_brain_answers_over_http(
    pump: Pump, desk: Brain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, request = re.findall(r"```sh\n(.*?)```", STEPS["5"], re.DOTALL)
    token = Tokens(pump.wiring.store).create("web", ["shop:"], (Verb.READ, Verb.SUBMIT))
    with GatewayThread(pump.settings, desk) as gateway, pumping(pump):
        monkeypatch.setenv("BASE", gateway.url)
        monkeypatch.setenv("TOKEN", token.text)
        said = [ask(request) for _ in range(2)]
        run("5", "shop_page")
    assert "order A1 cost 120.0" in said[0]
    assert said[0] == said[1]
    out = capsys.readouterr().out
    assert '"kind":"result"' in out
    assert "order B2 cost 15.5" in out


def ask(command: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout
