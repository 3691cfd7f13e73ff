"""Nothing is started where something is missing; `init` writes a project whose tools work."""

from __future__ import annotations

import errno
import os
import runpy
import socket
from pathlib import Path
from typing import Any

import pytest

from brainq.app.devserver.locks import take_lock, write_holder
from brainq.cli.commands.setup import PROJECT_FILES
from brainq.engine.tools.tool import Tool
from brainq.errors import ExitCode
from tests.support.commands import Brainq
from tests.support.pump import Pump, sqlite_url

BRAIN = "from brainq import Brain\n\nbrain = Brain('keyed', {model!r})\n"
COMMANDS = (("dev",), ("up",), ("worker", "coordinator"))


@pytest.fixture(autouse=True)
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker, or a process that becomes one, would be a failure here."""

    def no(*_given: object, **_named: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen.__init__", no)
    monkeypatch.setattr("os.execv", no)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_key_nothing_starts_and_one_sentence_says_what_to_set(
    brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "keyed_brain.py").write_text(BRAIN.format(model="openai:gpt-4.1-mini"))
    monkeypatch.setenv("BRAINQ_APP", "keyed_brain:brain")
    ran = brainq(*command)
    assert ran.code == ExitCode.SETUP
    assert ran.err == (
        "brainq: model: openai:gpt-4.1-mini: no API key for OpenAI; set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
        "server of your own\n"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_with_redis_and_sql_away_nothing_starts_and_each_is_one_line(
    brainq: Brainq, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("BRAINQ_REDIS_URL", "redis://:hush@127.0.0.1:1/0")
    monkeypatch.setenv("BRAINQ_SQL_URL", "postgresql://me:hush@127.0.0.1:1/shop")
    ran = brainq(*command)
    assert ran.code == ExitCode.SETUP
    sql, redis = ran.err.splitlines()
    assert sql.startswith("brainq: sql: postgresql://me:***@127.0.0.1:1/shop does not answer")
    assert redis.startswith("redis: redis://:***@127.0.0.1:1/0 does not answer")
    assert sql.endswith("start the database, or correct BRAINQ_SQL_URL")
    assert redis.endswith("start Redis, or correct BRAINQ_REDIS_URL")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_app_that_raises_on_import_is_shown_with_its_traceback(
    brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    module = "raises_" + "_".join(command)
    (tmp_path / f"{module}.py").write_text("def price():\n    return 1 / 0\n\n\nprice()\n")
    monkeypatch.setenv("BRAINQ_APP", f"{module}:brain")
    ran = brainq(*command)
    assert ran.code == ExitCode.SETUP
    assert "Traceback (most recent call last):" in ran.err
    assert "    price()\n" in ran.err
    assert f"{module}.py:2: ZeroDivisionError: division by zero" in ran.err.splitlines()[-1]


def test_dev_says_who_runs_here_already(brainq: Brainq, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    lock = take_lock(tmp_path / "run" / "serial.lock")
    assert lock is not None
    write_holder(lock, command="brainq up")
    try:
        ran = brainq("dev")
    finally:
        os.close(lock)
    assert ran.code == ExitCode.REFUSED
    assert f"`brainq up` (process {os.getpid()}) already runs the serial pool on {tmp_path}" in ran.err


def test_dev_says_that_flowers_port_is_taken(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr("brainq.cli.dev.stack.FLOWER_PORT", port)
        ran = brainq("dev", "--flower")
    assert ran.code == ExitCode.SETUP
    assert f"port {port} of 127.0.0.1, which is taken" in ran.err


def test_a_directory_that_takes_no_files_is_no_bug(
    brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BRAINQ_DATA_DIR", str(tmp_path / "file"))
    ran = brainq("dev")
    assert ran.code == ExitCode.SETUP
    assert os.strerror(errno.ENOTDIR) in ran.err or os.strerror(errno.EEXIST) in ran.err
    assert "bug" not in ran.err


def test_up_knows_its_pools(brainq: Brainq) -> None:
    ran = brainq("up", "cereal")
    assert ran.code == ExitCode.USAGE
    assert "'cereal' is not one of coordinator, parallel, serial, finalizer, flower, gateway or all" in ran.err
    ran = brainq("up", "all", "serial")
    assert ran.code == ExitCode.USAGE
    assert "serial would have two workers; name each pool once" in ran.err


def test_an_env_file_is_read_and_what_is_set_already_wins(
    brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINQ_PREFIX", "set:")
    monkeypatch.setenv("BRAINQ_LEASE_S", "")  # put back afterwards, whatever the file does
    monkeypatch.delenv("BRAINQ_LEASE_S")
    (tmp_path / ".env").write_text("BRAINQ_LEASE_S=none\nBRAINQ_PREFIX=no colon\n")
    ran = brainq("list")
    assert "BRAINQ_LEASE_S" in ran.err
    assert "BRAINQ_PREFIX" not in ran.err


def test_init_writes_a_project_of_that_name_and_overwrites_nothing(brainq: Brainq, tmp_path: Path) -> None:
    ran = brainq("init", "corner-shop")
    assert (ran.code, ran.out) == (ExitCode.OK, "cd corner-shop\nbrainq dev\n")
    made = {path.name: path.read_text() for path in (tmp_path / "corner-shop").iterdir()}
    assert set(made) == set(PROJECT_FILES.values())
    assert '"corner-shop",' in made["app.py"]
    assert "CORNER_SHOP_MODEL" in made["app.py"]
    assert "CORNER_SHOP_MODEL=" in made[".env.example"]
    (tmp_path / "corner-shop" / "app.py").write_text("mine")
    again = brainq("init", "corner-shop")
    assert again.code == ExitCode.USAGE
    assert "app.py" in again.err
    assert (tmp_path / "corner-shop" / "app.py").read_text() == "mine"
    assert brainq("init", "Corner Shop").code == ExitCode.USAGE


def test_the_projects_tools_are_called_by_the_stand_in_and_share_their_stock(
    brainq: Brainq, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_MODEL", raising=False)
    brainq("init", "shop")
    brain: Any = runpy.run_path(str(tmp_path / "shop" / "app.py"))["brain"]
    # Another load is what another process would have: no variable of the first.
    other: Any = runpy.run_path(str(tmp_path / "shop" / "app.py"))["brain"]
    with Pump(brain, redis_url, sqlite_url(tmp_path)) as pump:
        result = pump.finish(pump.submit("s1", "count apples, restock apples by 5"))
    assert "count(item='apples') said: 3" in result.text
    assert "restock(item='apples', amount=5) said: apples: now 8" in result.text
    counting: Tool = other.tools["count"]
    assert counting.function("apples") == 8
