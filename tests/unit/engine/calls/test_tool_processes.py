"""Tools in child processes: killed in time, with all they started, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.call import Progress, ToolFailure, ToolSuccess, ToolTimeout
from brainq.contracts.file import File
from brainq.contracts.turn import Citation
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.tools.context import SideOutputs
from brainq.engine.tools.deadline import DeadlineToken
from tests.support.blobs import png
from tests.support.wait import wait_until
from tests.unit.engine.calls.process_brain import brain
from tests.unit.engine.calls.support import context_for, is_running, run, run_in

REFERENCE = "tests.unit.engine.calls.process_brain:brain"


@pytest.fixture(scope="module")
def executor() -> Iterator[BoundedToolExecutor]:
    executor = BoundedToolExecutor(brain_ref=REFERENCE)
    yield executor
    executor.close()


def call(executor: BoundedToolExecutor, name: str, limit_s: float = 30.0, **arguments: Any) -> CallReturn:
    return run(executor, brain.tools[name], arguments, limit_s=limit_s)


def value_of(outcome: CallReturn) -> Any:
    assert isinstance(outcome, ToolSuccess), outcome
    return outcome.value


def pids_in(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def test_what_it_says_of_its_progress_is_heard(executor: BoundedToolExecutor) -> None:
    context = context_for(DeadlineToken(20.0))
    ended = run_in(executor, brain.tools["count_rows"], context)
    assert isinstance(ended, ToolSuccess)
    assert context.newest_progress == Progress(done=2, total=3, message="rows")


def test_a_child_is_kept_for_the_next_call(executor: BoundedToolExecutor) -> None:
    first, second = (value_of(call(executor, "add", a=n)) for n in (1, 2))

    assert (first["sum"], second["sum"]) == (3, 4)
    assert first["pid"] == second["pid"] != os.getpid()


def test_a_machine_that_starts_no_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No exception: a write whose function never began would be unknown."""

    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("brainq.engine.calls.tool_processes._ToolChild", full)
    executor = BoundedToolExecutor(brain_ref=REFERENCE)
    outcome = call(executor, "add", a=1)
    executor.close()

    assert isinstance(outcome, ToolFailure)
    said = "SetupError: no process could be started for the tool: Resource temporarily unavailable"
    assert outcome.error == said


def test_async_tools_run_in_a_child_too(executor: BoundedToolExecutor) -> None:
    assert value_of(call(executor, "async_add", a=1, b=2)) == 3


def test_the_child_imports_no_service_library(executor: BoundedToolExecutor) -> None:
    assert value_of(call(executor, "heavy_imports")) == []


def test_the_context_goes_in_and_its_outputs_come_back(executor: BoundedToolExecutor) -> None:
    token = DeadlineToken(30.0)
    context = context_for(token)

    outcome = run_in(executor, brain.tools["cite"], context)

    assert value_of(outcome) == ["s", "turn", "c1-0", "turn:c1-0", "2", "/work"]
    assert getattr(outcome, "block_tool", None) is True
    assert context.outputs() == SideOutputs(
        (Citation(source="a.md", title="A"),), (Citation(source="https://example.org/"),), ("/tmp/plot.png",), True
    )


def test_what_the_tool_raises_comes_back(executor: BoundedToolExecutor) -> None:
    outcome = call(executor, "fail", message="no luck")

    assert isinstance(outcome, ToolFailure)
    assert (outcome.error, outcome.error_type) == ("ValueError: no luck", "ValueError")


def test_a_busy_child_is_killed_at_its_deadline_with_all_it_started(
    executor: BoundedToolExecutor, tmp_path: Path
) -> None:
    call(executor, "add", a=1)  # the child is up: its start does not count to the limit below
    outcome = call(executor, "spin", limit_s=2.0, pid_file=str(tmp_path / "pids"))

    assert isinstance(outcome, ToolTimeout)
    assert not outcome.still_running
    assert outcome.after_ms >= 1_000
    pids = pids_in(tmp_path / "pids")
    assert len(pids) == 2
    wait_until(lambda: not any(map(is_running, pids)), "the child and its own child are gone")
    assert value_of(call(executor, "add", a=1))["sum"] == 3


def test_a_child_that_holds_the_interpreter_lock_is_killed_when_cancelled(
    executor: BoundedToolExecutor, tmp_path: Path
) -> None:
    token = DeadlineToken(600.0)

    def cancel_once_it_runs() -> None:
        wait_until(lambda: pids_in(tmp_path / "pids"), "the tool runs", timeout_s=60)
        token.cancel("the user said stop")

    cancelling = threading.Thread(target=cancel_once_it_runs)
    cancelling.start()
    arguments = {"pid_file": str(tmp_path / "pids")}
    outcome = run_in(executor, brain.tools["block_in_c"], context_for(token), arguments)
    cancelling.join()

    assert isinstance(outcome, ToolTimeout)
    assert not outcome.still_running
    pids = pids_in(tmp_path / "pids")
    wait_until(lambda: not any(map(is_running, pids)), "the child and its own child are gone")


@pytest.mark.parametrize("status", [0, 7])
def test_a_child_that_dies_is_a_failure_and_is_replaced(executor: BoundedToolExecutor, status: int) -> None:
    outcome = call(executor, "die", status=status)

    assert isinstance(outcome, ToolFailure)
    assert outcome.error_type == "ProcessDied"
    assert f"status {status}" in outcome.error
    assert value_of(call(executor, "add", a=1))["sum"] == 3


def test_a_child_that_died_while_idle_is_replaced(executor: BoundedToolExecutor) -> None:
    pid = value_of(call(executor, "add", a=1))["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid), "the idle child is dead")

    assert value_of(call(executor, "add", a=1))["pid"] != pid


@pytest.mark.usefixtures("long_grace")
def test_a_cooperative_tool_may_return_what_it_has(executor: BoundedToolExecutor) -> None:
    call(executor, "add", a=1)
    outcome = call(executor, "cooperate", limit_s=1.0)

    assert value_of(outcome) == "deadline"
    assert getattr(outcome, "partial", None) is True


@pytest.mark.usefixtures("long_grace")
def test_a_cancel_reaches_the_tool_and_not_the_call_after_it(executor: BoundedToolExecutor) -> None:
    call(executor, "add", a=1)
    token = DeadlineToken(600.0)
    context = context_for(token)

    def cancel_once_it_runs() -> None:
        wait_until(lambda: context.newest_progress is not None, "the tool runs")
        token.cancel("the user said stop")

    cancelling = threading.Thread(target=cancel_once_it_runs)
    cancelling.start()
    outcome = run_in(executor, brain.tools["cooperate"], context)
    cancelling.join()

    assert value_of(outcome) == "the user said stop"
    assert value_of(call(executor, "cooperate", limit_s=1.0)) == "deadline"


def test_without_a_brain_reference_the_call_fails_with_the_remedy() -> None:
    outcome = call(BoundedToolExecutor(), "add", a=1)

    assert isinstance(outcome, ToolFailure)
    assert "BRAINQ_APP" in outcome.error


def test_a_brain_that_cannot_be_loaded_is_named() -> None:
    executor = BoundedToolExecutor(brain_ref="no_such_brain_module:brain")
    outcome = call(executor, "add", a=1)
    executor.close()

    assert isinstance(outcome, ToolFailure)
    assert outcome.error_type == "SetupError"
    assert "no_such_brain_module" in outcome.error


def test_a_start_longer_than_the_limit_is_kept_for_the_next_call() -> None:
    executor = BoundedToolExecutor(brain_ref=REFERENCE)
    try:
        outcomes: list[CallReturn] = []

        def try_again() -> bool:
            outcomes.append(call(executor, "add", limit_s=0.05, a=1))
            return isinstance(outcomes[-1], ToolSuccess)

        assert not try_again(), "no interpreter starts that fast"
        wait_until(try_again, "one and the same child gets ready in the end", timeout_s=60)
    finally:
        executor.close()


@pytest.mark.parametrize("name", ["spin", "block_in_c"])
def test_children_die_with_a_worker_that_is_killed(tmp_path: Path, name: str) -> None:
    pid_file = tmp_path / "pids"
    script = f"""
        from tests.unit.engine.calls.support import run
        from tests.unit.engine.calls.process_brain import brain
        from brainq.engine.calls.executor import BoundedToolExecutor
        run(BoundedToolExecutor(brain_ref={REFERENCE!r}), brain.tools[{name!r}],
            {{"pid_file": {str(pid_file)!r}}}, limit_s=600.0)
    """
    worker = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    try:
        pids = wait_until(lambda: pids_in(pid_file), "the tool runs", timeout_s=60)
        assert len(pids) == 2
        assert all(map(is_running, pids))
    finally:
        worker.kill()
        worker.wait()

    wait_until(lambda: not any(map(is_running, pids)), "the child and its own child are gone")


def test_files_come_out_of_a_child(executor: BoundedToolExecutor) -> None:
    context = context_for(DeadlineToken(30.0))
    ended = run_in(executor, brain.tools["draw"], context)
    assert value_of(ended) == "drawn"
    assert context.outputs().files == (File(png(), name="chart.png"),)
