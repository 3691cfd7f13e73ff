"""The command line: help, versions, errors and exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from brainq.cli.commands.monitor import FLOWER_CONFIG, flower_command, require_login
from brainq.cli.commands.run import named_pools, worker_command
from brainq.cli.commands.submit import EXIT_OF_ENDING, read_limits, read_options
from brainq.cli.main import MEANINGS, app, main
from brainq.contracts.status import Ending
from brainq.errors import (
    ApprovalDecided,
    BrainqError,
    ExitCode,
    InvalidInput,
    QueueFull,
    ResultTimeout,
    SessionBusy,
    SetupError,
    StaleTurn,
    TurnNotFound,
    TurnRejected,
    kind_of,
)
from brainq.runtime.settings.environment import WARNED_NAMES

COMMANDS = (
    *("init", "dev", "submit", "tail", "list", "show", "cancel", "doctor", "up", "serve", "worker", "flower"),
    *("steer", "hold", "release", "approvals", "approve", "deny", "session", "pause", "resume"),
    *("complete", "fail", "history", "interrupt", "drop", "ready", "compact"),
)
HEAVY = ("redis", "celery", "kombu", "sqlalchemy", "pydantic", "rich", "httpx", "fastapi", "uvicorn")

Leaves = Callable[..., tuple[int, str, str]]


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Leaves:
    """Runs `brainq ARGUMENTS` in an empty directory: its exit code, stdout and stderr."""
    for name in ("BRAINQ_APP", "BRAINQ_REDIS_URL", "BRAINQ_SQL_URL", "BRAINQ_DATA_DIR"):
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["brainq", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def test_alone_it_prints_help_with_examples_and_exit_codes(leaves: Leaves) -> None:
    code, out, _ = leaves()
    assert code == 0
    assert "brainq init shop" in out
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert MEANINGS[ExitCode.WAITED_OUT] in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "command", [*COMMANDS, "db upgrade", "token create", "token list", "token revoke", "webhook list", "webhook retry"]
)
def test_every_command_teaches_by_examples(command: str) -> None:
    said = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert "Example" in said
    assert f"brainq {command}" in said or f"{command} --json" in said


def test_every_command_takes_the_brain() -> None:
    without = [name for name, command in leaf_commands() if "--app" not in options_of(command)]
    assert without == ["init", "schema"]  # one makes the brain, the other is the same for all


def leaf_commands(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    main: Any = group or typer.main.get_command(app)
    for name, command in main.commands.items():
        if hasattr(command, "commands"):
            yield from leaf_commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_a_mistyped_setting_is_said_with_the_right_name(leaves: Leaves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_REDIS_URI", "redis://127.0.0.1:6379/0")
    monkeypatch.setenv(WARNED_NAMES, "")
    _, _, err = leaves("list")
    assert "BRAINQ_REDIS_URI is not a setting; did you mean BRAINQ_REDIS_URL?" in err


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, runpy; sys.argv = ['brainq', '--help']\n"
        "try: runpy.run_module('brainq.cli.main', run_name='__main__')\n"
        f"finally: print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_version_is_the_packages(leaves: Leaves) -> None:
    from brainq import __version__

    assert leaves("--version")[:2] == (0, f"brainq {__version__}\n")


def test_an_error_is_one_line_with_the_remedy(leaves: Leaves) -> None:
    code, out, err = leaves("list")
    assert (code, out) == (ExitCode.SETUP, "")
    assert err.startswith("brainq: no Redis: ")
    assert "brainq dev" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "wrong", [("nope",), ("submit", "s1"), ("tail", "x", "--after", "-1"), ("list", "--state", "odd")]
)
def test_wrong_usage_is_2(leaves: Leaves, wrong: tuple[str, ...]) -> None:
    code, _, err = leaves(*wrong)
    assert code == ExitCode.USAGE
    assert "Traceback" not in err


def test_dev_without_a_brain_says_how_to_name_one(leaves: Leaves) -> None:
    code, _, err = leaves("dev")
    assert code == ExitCode.SETUP
    assert "brainq dev -A module:variable" in err


def test_effects_are_the_serial_pools_alone(leaves: Leaves) -> None:
    assert leaves("worker", "parallel", "--effects", "network")[0] == ExitCode.USAGE
    assert leaves("worker", "serial", "--effects", "read_only")[0] == ExitCode.USAGE
    assert leaves("worker", "oven")[0] == ExitCode.USAGE


def test_a_bug_is_one_line_too(leaves: Leaves, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("brainq.cli.main.app", broken)
    code, _, err = leaves()
    assert code == ExitCode.BUG
    assert "surprise" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("x", "y"), ExitCode.USAGE),
        (TurnNotFound("x"), ExitCode.NOT_FOUND),
        (TurnRejected("x"), ExitCode.FAILED),
        (ResultTimeout("x"), ExitCode.WAITED_OUT),
        (SetupError("x"), ExitCode.SETUP),
        (SessionBusy("s1", "turn-1"), ExitCode.REFUSED),
        (QueueFull("3 turns wait", "BRAINQ_X", 3), ExitCode.REFUSED),
        (StaleTurn("turn-1", ""), ExitCode.REFUSED),
        (ApprovalDecided("turn-1.c1-0", "denied", "x"), ExitCode.REFUSED),
        (BrainqError("x"), ExitCode.FAILED),
    ],
)
def test_each_error_has_its_exit_code(error: BrainqError, code: ExitCode) -> None:
    assert kind_of(error).exit is code


def test_each_ending_has_its_exit_code() -> None:
    found = {ending.value: int(EXIT_OF_ENDING[ending]) for ending in Ending}
    assert found == {"completed": 0, "failed": 1, "timed_out": 3, "cancelled": 4}


def test_limits_are_read_and_wrong_ones_named() -> None:
    assert read_limits(["max_steps=3", "timeout_s=2.5"]) == {"max_steps": 3, "timeout_s": 2.5}
    assert read_limits([]) is None
    for wrong in ("max_steps", "max_steps=", "max_steps=three", "=3"):
        with pytest.raises(InvalidInput, match="NAME=NUMBER"):
            read_limits([wrong])
    with pytest.raises(InvalidInput, match=r"'steps' is not a limit; use one of .*max_steps"):
        read_limits(["steps=3"])


def test_options_are_read_as_what_they_are() -> None:
    given = ["temperature=0", 'stop=["END", "1"]', "parallel_tool_calls=false", "tool_choice=7", "seed=x=y"]
    assert read_options(given) == {
        "temperature": 0,
        "stop": ["END", "1"],
        "parallel_tool_calls": False,
        "tool_choice": "7",
        "seed": "x=y",
    }
    assert read_options([]) is None
    for wrong in ("temperature", "=3"):
        with pytest.raises(InvalidInput, match="NAME=VALUE"):
            read_options([wrong])


def test_a_worker_has_the_stock_celery_commands_options() -> None:
    command = worker_command(["serial"], concurrency=2, name="net@%h", level="debug")
    assert command[1:6] == ["-m", "brainq.workers.tasks.celery_command", "-A", "brainq.workers.serial", "worker"]
    assert command[6:] == [*("--without-gossip", "--without-mingle", "-n", "net@%h", "-l", "DEBUG", "-c", "2")]


@pytest.mark.parametrize(
    ("text", "pools", "module", "name"),
    [
        ("serial", ("serial",), "serial", "serial@%h"),
        ("all", ("coordinator", "parallel", "serial", "finalizer"), "all", "all@%h"),
        ("finalizer, coordinator", ("coordinator", "finalizer"), "all", "coordinator-finalizer@%h"),
        ("serial,all", ("coordinator", "parallel", "serial", "finalizer"), "all", "all@%h"),
        ("parallel,parallel", ("parallel",), "parallel", "parallel@%h"),
    ],
)
def test_a_worker_serves_any_set_of_pools(text: str, pools: tuple[str, ...], module: str, name: str) -> None:
    assert named_pools(text) == pools
    command = worker_command(pools)
    assert command[command.index("-A") + 1] == f"brainq.workers.{module}"
    assert command[command.index("-n") + 1] == name
    assert "-c" not in command


@pytest.mark.parametrize("text", ["writers", "", "all,writers", "coordinator,", "Serial"])
def test_a_pool_that_does_not_exist_is_named_with_those_that_do(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not one of coordinator, parallel, serial, finalizer or all; join"):
        named_pools(text)


def test_several_pools_have_no_number_of_threads_in_common() -> None:
    with pytest.raises(InvalidInput, match="set BRAINQ_CONCURRENCY__COORDINATOR, BRAINQ_CONCURRENCY__SERIAL"):
        worker_command(["coordinator", "serial"], concurrency=4)


def test_flower_runs_with_the_settings_that_brainq_brings() -> None:
    assert FLOWER_CONFIG.exists()
    assert flower_command(8080)[-3:] == [f"--conf={FLOWER_CONFIG}", "--address=127.0.0.1", "--port=8080"]
    assert flower_command(8080, url_prefix="/flower")[-2:] == ["--port=8080", "--url-prefix=/flower"]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_flower_on_this_machine_alone_needs_no_login(address: str) -> None:
    require_login(address, {})


@pytest.mark.parametrize("address", ["0.0.0.0", "", "10.1.2.3", "::"])
def test_flower_for_others_needs_a_login(address: str) -> None:
    with pytest.raises(InvalidInput, match="FLOWER_BASIC_AUTH"):
        require_login(address, {})
    require_login(address, {"FLOWER_BASIC_AUTH": "me:secret"})


@pytest.mark.parametrize("command", [("dev",), ("up",), ("worker", "serial")])
def test_a_level_that_is_none_is_wrong_usage(leaves: Leaves, command: tuple[str, ...]) -> None:
    code, _, err = leaves(*command, "-l", "loud")
    assert code == ExitCode.USAGE
    assert "'warning'" in err


def test_the_package_is_the_command_too() -> None:
    ran = subprocess.run([sys.executable, "-m", "brainq", "--help"], capture_output=True, text=True, check=True)
    assert "Try it, with two terminals" in ran.stdout
