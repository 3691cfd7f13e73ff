"""Processes that must not outlive the one that started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brainq.runtime.processes.guard import ProcessGuard
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import is_running

STARTER = """
import os, subprocess, sys
from brainq.runtime.processes.guard import ProcessGuard
guard = ProcessGuard(grace_s=1.0)
for script in ("trap '' TERM; exec sleep 600", "read line; echo ended > $0"):
    child = subprocess.Popen(["sh", "-c", script, sys.argv[1]], stdin=subprocess.PIPE, start_new_session=True)
    guard.add(child.pid)
    print(child.pid, flush=True)
os._exit(9)
"""


def test_what_heeds_the_end_of_its_stdin_ends_by_itself_and_the_rest_is_killed(tmp_path: Path) -> None:
    last_words = tmp_path / "ended"
    run = subprocess.run(
        [sys.executable, "-c", STARTER, str(last_words)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == 9
    stubborn, heeding = map(int, run.stdout.split())
    wait_until(lambda: not is_running(stubborn) and not is_running(heeding), "both are gone")
    assert last_words.read_text() == "ended\n"


def test_of_a_guard_that_was_killed_no_pipe_stays_open_when_another_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: Any, **named: Any) -> subprocess.Popen[str]:
        started.append(popen(*arguments, **named))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    guard = ProcessGuard()
    child = popen(["sleep", "600"], start_new_session=True)
    guard.add(child.pid)
    started[0].kill()
    started[0].wait()
    guard.add(child.pid)
    guard.forget(child.pid)
    guard.close_if_idle()
    assert [(one.stdin is not None and one.stdin.closed, one.returncode is not None) for one in started] == [
        (True, True),
        (True, True),
    ]
    child.kill()
    child.wait()
