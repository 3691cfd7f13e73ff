"""The demo as a person runs it: no Redis on PATH, no key, and nothing left running or lying about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
DROPPED = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "NO_COLOR", "FORCE_COLOR", "VAULT_DIR")


# A loaded machine may take a minute to start four workers.
pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.needs(Path("/proc").is_dir(), "/proc, to look for processes"),
]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the demo makes its temporary folder."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture
def demo(scratch: Path) -> tuple[list[str], dict[str, str]]:
    """The command and its environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in DROPPED and not name.startswith("BRAINQ_")
    }
    # /bin has sh, which the embedded server is kept by; what else is there is not needed.
    environment = kept | {
        "PATH": "/bin",
        "TMPDIR": str(scratch),
        "BRAINQ_PREFIX": "not a prefix",
    }
    return [sys.executable, "-m", "examples.vault.demo"], environment


def left_running(scratch: Path) -> list[str]:
    """Command lines of processes that hold a file in `scratch` open: the server its data, each worker its log.

    Their environments cannot be searched for a mark: Celery and the server write their titles over them.
    """
    found: list[str] = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(os.readlink(file).startswith(f"{scratch}/") for file in (process / "fd").iterdir()):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # it ended meanwhile, or is another user's
                continue
    return found


def test_the_demo_runs_without_redis_and_without_a_key(
    demo: tuple[list[str], dict[str, str]], scratch: Path
) -> None:
    command, environment = demo
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    shown = done.stdout
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 120
    assert "offline rules" in shown
    for effect in ("read_only", "local_write", "network", "destructive"):
        assert effect in shown
    for row in ("coordinator", "parallel", "serial", "finalizer"):
        assert any(line.startswith(row) for line in shown.splitlines()), row
    assert "not run" not in shown
    assert shown.count("completed (answered)") == 6
    assert "+ reading/why-retries-need-a-key.md  new" in shown
    assert "~ projects/checkout-rewrite.md  changed, 1 line added" in shown
    assert "- inbox/standup-scratch.md  deleted" in shown
    assert left_running(scratch) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.full
def test_a_demo_that_is_stopped_leaves_nothing_running(
    demo: tuple[list[str], dict[str, str]], scratch: Path
) -> None:
    command, environment = demo
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: len(left_running(scratch)) >= 6, "the demo has started its workers", 120, 0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert left_running(scratch) == []
    assert list(scratch.iterdir()) == []
