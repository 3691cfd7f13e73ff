"""A short job that is killed, and started again: it continues, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brainq.app.devserver.locks import is_locked
from tests.support.wait import wait_until

JOB = '''
import os, signal, sys, time
from pathlib import Path
import brainq
from brainq import Brain, Effect
from brainq.testing import ScriptedProvider, calls, says

model = ScriptedProvider([calls(("read", {})), calls(("write", {})), calls(("alone", {})), says("Done.")])
brain = Brain("job", model)

def die_once(tool):
    """The first run of this tool never ends; its process is killed."""
    begun = Path(f"{tool}.begun")
    if os.environ["DIES_IN"] == tool and not begun.exists():
        begun.touch()
        time.sleep(600)
    return f"{tool} by {os.getpid()}"

@brain.tool(effect=Effect.READ_ONLY, timeout_s=280)
def read() -> str:
    """Read."""
    return die_once("read")

@brain.tool(effect=Effect.NETWORK)
def write() -> str:
    """Write."""
    return die_once("write")

@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def alone() -> str:
    """Run in a process of its own."""
    return die_once("alone")

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
    with brainq.local(brain) as client:
        result = client.run("monday", "Go", request_key="once")
        calls_ = client.handle(result.turn_id).calls()
        print(result.ending, *(f"{call.tool}={call.status}" for call in calls_))
'''
# A lease that outlasts the test: only the next program can know that this one is gone.
PACE = {"BRAINQ_LEASE_S": "300", "BRAINQ_BEAT_S": "0.3", "BRAINQ_SWEEP_S": "0.2"}


@contextmanager
def job(directory: Path, dies_in: str) -> Generator[subprocess.Popen[str]]:
    (directory / "job.py").write_text(JOB)
    process = subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=directory,
        env={**os.environ, **PACE, "DIES_IN": dies_in},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    """The processes that it has started, and those that they have."""
    try:
        found = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(each) for each in (thread / "children").read_text().split()]
    except OSError:
        return []
    return [*found, *(each for child in set(found) for each in children(child))]


@pytest.mark.parametrize(
    ("dies_in", "statuses"),
    [
        ("write", "read=completed write=unknown alone=completed"),
        ("alone", "read=completed write=completed alone=completed"),
    ],
)
def test_a_job_that_is_killed_goes_on(tmp_path: Path, dies_in: str, statuses: str) -> None:
    with job(tmp_path, dies_in) as first:
        wait_until((tmp_path / f"{dies_in}.begun").exists, "the tool begins")
        left = set(children(first.pid))
        assert len(left) >= 2, "Redis, and the shell that ends it"
        first.send_signal(signal.SIGKILL)
        first.wait(60)
        with job(tmp_path, dies_in) as second:  # at once: the first one's Redis may still write its data
            out, errors = second.communicate(timeout=120)
    assert (out, second.returncode) == (f"completed {statuses}\n", 0), errors
    wait_until(lambda: not [pid for pid in left if Path(f"/proc/{pid}").exists()], "every process ends")
    assert not is_locked(tmp_path / ".brainq" / "redis" / "redis.lock")


def test_a_second_program_is_told_of_the_first_which_ctrl_c_ends(tmp_path: Path) -> None:
    with job(tmp_path, "read") as first:
        wait_until((tmp_path / "read.begun").exists, "the tool begins")
        with job(tmp_path, "read") as second:
            _, errors = second.communicate(timeout=120)
        assert f"`brainq.local in job.py` (process {first.pid}) already works on {tmp_path}" in errors
        left = children(first.pid)
        first.send_signal(signal.SIGINT)
        out, errors = first.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt"), (first.returncode, out)
    wait_until(lambda: not [pid for pid in left if Path(f"/proc/{pid}").exists()], "every process ends")
