"""A process whose output cannot be written goes on: its lines are lost, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs(Path("/dev/full").exists(), "/dev/full")
PRINTS = """
import sys
from brainq.runtime.observe.logs import outlive_full_log
outlive_full_log()
print("to stdout", flush=True)
print("to stderr", file=sys.stderr, flush=True)
sys.__stdout__.write("and the rest")
"""
GATEWAY = """
from types import SimpleNamespace
from brainq.workers import gateway
gateway.serve = lambda settings, brains, ready, listener: ready(SimpleNamespace(description="nobody"))
gateway.main()
"""


def run(code: str, output: str) -> int:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ".",
        "BRAINQ_APP": "tests.support.brains.echoing:brain",
        "BRAINQ_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    with Path(output).open("wb") as there:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=Path(__file__).parents[4],
            stdout=there,
            stderr=there,
            timeout=60,
            check=False,
        ).returncode


@pytest.mark.parametrize("code", [PRINTS, GATEWAY], ids=["any", "gateway"])
def test_a_full_disk_under_the_log_ends_nothing(code: str) -> None:
    assert run(code, "/dev/full") == 0


def test_what_can_be_written_is(tmp_path: Path) -> None:
    assert run(PRINTS, str(tmp_path / "log")) == 0
    assert (tmp_path / "log").read_text().split("\n") == ["to stdout", "to stderr", "and the rest"]
