"""The demo as a person runs it: no Redis on PATH, no key, and nothing left running or lying about."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from examples.vault.report import show_next
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
DROPPED = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "NO_COLOR", "FORCE_COLOR", "VAULT_DIR")


# A loaded machine may take a minute to start four workers.
pytestmark = [pytest.mark.timeout(240), pytest.mark.needs(Path("/proc").is_dir(), "/proc, to look for processes")]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the demo makes its temporary folder."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture
def demo(scratch: Path) -> tuple[list[str], dict[str, str]]:
    """The command and its environment."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED and not name.startswith("BRAINQ_")}
    # /bin has sh, which the embedded server is kept by; what else is there is not needed.
    environment = kept | {"PATH": "/bin", "TMPDIR": str(scratch), "BRAINQ_PREFIX": "not a prefix"}
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


def test_the_demo_runs_without_redis_and_without_a_key(demo: tuple[list[str], dict[str, str]], scratch: Path) -> None:
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
    turns, killed = shown.split("A worker is killed in the middle of a write")
    assert "not run" not in turns
    assert turns.count("completed (answered)") == 6
    assert "+ reading/why-retries-need-a-key.md  new" in shown
    assert "~ projects/checkout-rewrite.md  changed, 1 line added" in shown
    assert "- inbox/standup-scratch.md  deleted" in shown
    for told in (
        r"running +send_note",
        r"KILLED +the note has arrived; kill -9 \d+",
        r"unknown +send_note .* worker lost",
        r"turn +completed",
        r"ledger +c1-0 is unknown",
        r"inbox +received 1 time\n",
        r"answer +I did not send projects/checkout-rewrite again",
    ):
        assert re.search(told, killed), told
    assert left_running(scratch) == []
    assert list(scratch.iterdir()) == []


def printed_commands() -> dict[str, list[str]]:
    """What the demo says to try next: the verb of `brainq`, and the command as a shell takes it apart."""
    out = StringIO()
    show_next(Console(file=out, width=200, color_system=None))
    commands = [shlex.split(line) for line in out.getvalue().splitlines() if "brainq" in line]
    return {command[1]: command for command in commands}


def test_what_to_try_next_names_programs_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", "/bin")
    commands = printed_commands()
    assert set(commands) == {"dev", "submit", "tail"}
    assert all(os.access(command[0], os.X_OK) for command in commands.values())


@pytest.mark.full
def test_what_to_try_next_works_as_it_is_printed(
    demo: tuple[list[str], dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", "/bin")
    commands = printed_commands()
    environment = {name: value for name, value in demo[1].items() if name != "BRAINQ_PREFIX"}
    environment |= {"BRAINQ_DATA_DIR": str(tmp_path / "data")}
    log = tmp_path / "dev.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(commands["dev"], env=environment, stdout=out, stderr=out, start_new_session=True) as dev,
    ):
        try:
            wait_until(lambda: "ready" in log.read_text(), "brainq dev is up", 120, 0.1)
            asked = subprocess.run(commands["submit"], env=environment, capture_output=True, text=True, timeout=100)
            assert asked.returncode == 0, asked.stderr
            assert "open loops" in asked.stdout
            again = subprocess.run(commands["tail"], env=environment, capture_output=True, text=True, timeout=100)
            assert again.returncode == 0, again.stderr
            assert "completed" in again.stdout
        finally:
            dev.send_signal(signal.SIGINT)
            dev.wait(60)


def test_the_picture_of_the_demo_is_one_screen_with_a_kill() -> None:
    picture = (ROOT / "docs/images/demo.svg").read_text()
    lines = {int(number) for number in re.findall(r'clip-path="url\(#demo-line-(\d+)\)"', picture)}
    assert 15 <= len(lines) <= 20
    assert "KILLED" in picture


@pytest.mark.full
def test_a_demo_that_is_stopped_leaves_nothing_running(demo: tuple[list[str], dict[str, str]], scratch: Path) -> None:
    command, environment = demo
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: len(left_running(scratch)) >= 6, "the demo has started its workers", 120, 0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert left_running(scratch) == []
    assert list(scratch.iterdir()) == []
