"""`Pending` and `ChildTurn` come back as they are: from threads, from the loop, and from child processes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq.contracts.call import ChildTurn, ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, parse_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.turn import Limits
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.tools.context import FileChange, RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import Pending
from brainq.engine.tools.tool import Tool, make_tool
from tests.support.wait import wait_until
from tests.unit.engine.calls.process_brain import brain
from tests.unit.engine.calls.support import context_for, run, run_in

CHILD = ChildTurn(
    "Sum it up.", session_id="other", timeout_s=5.0, options={"limits": Limits(max_steps=2), "tags": ("a",)}
)


@pytest.fixture(scope="module")
def processes() -> Iterator[BoundedToolExecutor]:
    executor = BoundedToolExecutor(brain_ref="tests.unit.engine.calls.process_brain:brain")
    yield executor
    executor.close()


def wait_outside(ctx: RunContext) -> Pending:
    assert ctx.outside_token() == ctx.outside_token()
    return Pending(ctx.outside_token(), timeout_s=7.0)


async def wait_outside_async(ctx: RunContext) -> Pending:
    return wait_outside(ctx)


def ask_child() -> ChildTurn:
    return CHILD


@pytest.mark.parametrize(
    "tool",
    [make_tool(wait_outside), make_tool(wait_outside_async), brain.tools["wait_outside"]],
    ids=["thread", "async", "process"],
)
def test_a_pending_result_comes_back(processes: BoundedToolExecutor, tool: Tool) -> None:
    ended = run(processes, tool)
    assert isinstance(ended, Pending)
    assert ended.timeout_s == 7.0
    assert parse_outside_token(ended.token) == CallRef("s", "turn", "c1-0")


@pytest.mark.parametrize("tool", [make_tool(ask_child), brain.tools["ask_child"]], ids=["thread", "process"])
def test_a_child_turn_comes_back_with_plain_options(processes: BoundedToolExecutor, tool: Tool) -> None:
    ended = run(processes, tool)
    assert isinstance(ended, ChildTurn)
    assert (ended.message, ended.session_id, ended.timeout_s) == ("Sum it up.", "other", 5.0)
    assert ended.options["limits"]["max_steps"] == 2
    assert ended.options["tags"] == ["a"]


@pytest.mark.parametrize(
    "child",
    [ChildTurn("x", timeout_s=math.inf), ChildTurn("x", timeout_s=0), ChildTurn("x", options={"a": "y" * 300_000})],
)
def test_a_child_turn_that_makes_none_is_a_failure(executor: BoundedToolExecutor, child: ChildTurn) -> None:
    def ask() -> ChildTurn:
        return child

    ended = run(executor, make_tool(ask))
    assert isinstance(ended, ToolFailure)
    assert "ChildTurn" in ended.error


@pytest.mark.usefixtures("long_grace")
def test_within_the_grace_it_still_parks(executor: BoundedToolExecutor) -> None:
    def slow(ctx: RunContext) -> Pending:
        ctx.token.wait(60.0)
        return Pending("job-1")

    assert run(executor, make_tool(slow), limit_s=1.0) == Pending("job-1")


@pytest.mark.parametrize("value", [Pending("job-1"), ChildTurn("x")], ids=["pending", "child"])
def test_after_the_cut_it_is_no_news_but_that_the_function_has_ended(
    executor: BoundedToolExecutor, release: threading.Event, value: object
) -> None:
    late: list[ToolOutcome] = []

    def slow() -> Any:
        release.wait(60.0)
        return value

    assert isinstance(run(executor, make_tool(slow), limit_s=3.0, on_late=late.append), ToolTimeout)
    release.set()
    wait_until(lambda: late, "its end is told, so that its lanes are freed")
    assert isinstance(late[0], ToolTimeout)
    assert not late[0].still_running


def gives_up_at_once(ctx: RunContext) -> None:
    ctx.token.cancel("cancelled")
    raise TimeoutError


def stays(ctx: RunContext) -> None:
    ctx.token.cancel("cancelled")
    threading.Event().wait(5.0)


@pytest.mark.parametrize("function", [gives_up_at_once, stays])
def test_what_began_is_never_said_to_have_lasted_no_time(
    executor: BoundedToolExecutor, function: Callable[..., None]
) -> None:
    ended = run(executor, make_tool(function))
    assert isinstance(ended, ToolTimeout)
    assert ended.after_ms >= 1


def test_a_process_that_is_not_up_in_time_never_started_the_call() -> None:
    executor = BoundedToolExecutor(brain_ref="tests.unit.engine.calls.process_brain:brain")
    try:
        ended = run(executor, brain.tools["add"], {"a": 1}, limit_s=0.02)
    finally:
        executor.close()
    assert isinstance(ended, ToolTimeout)
    assert ended.after_ms == 0


def test_changes_come_out_of_a_process(processes: BoundedToolExecutor) -> None:
    token = DeadlineToken(30.0)
    context = context_for(token)
    run_in(processes, brain.tools["change"], context)
    outputs = context.outputs()
    assert outputs.changes[:3] == (
        FileChange("a.txt", None, "new"),
        FileChange("a.txt", "new", ""),
        FileChange("b.txt", "old", None),
    )
    assert outputs.changes[3:] == (FileChange("big.txt", too_large=True),)


def test_a_tool_in_a_process_waits_until_its_turn_is_ready(processes: BoundedToolExecutor) -> None:
    answers = [False, False, True]
    token = DeadlineToken(30.0)
    context = context_for(token, lambda: answers.pop(0))
    ended = run_in(processes, brain.tools["wait_until_ready"], context)
    assert isinstance(ended, ToolSuccess)
    assert (ended.value, answers) == (True, [])


def test_a_tool_in_a_process_that_is_never_ready_stops_asking(processes: BoundedToolExecutor) -> None:
    token = DeadlineToken(30.0)
    context = context_for(token, lambda: False)
    ended = run_in(processes, brain.tools["wait_until_ready"], context, {"timeout_s": 0.05})
    assert isinstance(ended, ToolSuccess)
    assert ended.value is False
