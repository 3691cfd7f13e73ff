"""The executor comes back in time, whatever the function does, and says truly how the call ended."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from brainq.contracts.call import ToolDenied, ToolFailure, ToolSuccess, ToolTimeout
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import ToolError
from brainq.engine.tools.tool import make_tool
from brainq.runtime.observe.tracebacks import TRACEBACK_VARIABLE
from tests.unit.engine.calls.support import context_for, run


class UnavailableError(Exception):
    retryable = True


def test_a_plain_function_is_called_with_its_types(executor: BoundedToolExecutor) -> None:
    def add(a: int, b: int = 2) -> dict[str, int]:
        return {"sum": a + b}

    outcome = run(executor, make_tool(add), {"a": "1"})

    assert isinstance(outcome, ToolSuccess)
    assert outcome.value == {"sum": 3}
    assert not outcome.partial


def test_an_async_function_runs_on_one_shared_loop(executor: BoundedToolExecutor) -> None:
    async def where() -> str:
        await asyncio.sleep(0)
        return f"{id(asyncio.get_running_loop())} {threading.current_thread().name}"

    tool = make_tool(where)
    values = {getattr(run(executor, tool), "value", None) for _ in range(3)}

    assert len(values) == 1
    assert "brainq-tool-loop" in str(values)


def test_a_plain_function_runs_in_the_caller_s_thread(executor: BoundedToolExecutor) -> None:
    def who() -> int:
        return threading.get_ident()

    context = context_for(DeadlineToken(30.0))
    cut: list[ToolTimeout] = []
    outcome = executor.run(make_tool(who), {}, context, on_cut=cut.append)
    assert isinstance(outcome, ToolSuccess)
    assert outcome.value == threading.get_ident()
    assert cut == []


def test_what_a_function_sets_in_its_context_variables_is_gone_after_it(executor: BoundedToolExecutor) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def change() -> None:
        variable.set("the tool's")

    context = context_for(DeadlineToken(30.0))
    assert isinstance(executor.run(make_tool(change), {}, context, on_cut=bool), ToolSuccess)
    assert variable.get() == "unset"


def test_calls_run_side_by_side(executor: BoundedToolExecutor) -> None:
    meeting = threading.Barrier(4, timeout=20.0)

    def meet() -> int:
        return meeting.wait()

    tool = make_tool(meet)
    with ThreadPoolExecutor(4) as callers:
        calls = [callers.submit(run, executor, tool) for _ in range(4)]

    assert sorted(getattr(call.result(), "value", -1) for call in calls) == [0, 1, 2, 3]


def test_the_context_variables_of_the_caller_are_seen(executor: BoundedToolExecutor) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def look() -> str:
        return variable.get()

    async def look_async() -> str:
        return variable.get()

    variable.set("the caller's")
    for function in (look, look_async):
        outcome = run(executor, make_tool(function))
        assert isinstance(outcome, ToolSuccess)
        assert outcome.value == "the caller's"


def raise_plain() -> None:
    raise ValueError("bad\n  value")


def raise_retryable() -> None:
    raise UnavailableError


def raise_exit() -> None:
    sys.exit(3)


async def raise_async() -> None:
    raise KeyError("k")


def raise_long() -> None:
    raise ValueError("x" * 10_000)


async def raise_async_exit() -> None:
    sys.exit(3)


async def raise_async_interrupt() -> None:
    raise KeyboardInterrupt


class ExitsAsText:
    def __str__(self) -> str:
        sys.exit(3)


@pytest.mark.parametrize("returned", [ExitsAsText(), [ExitsAsText()]])
def test_a_result_that_exits_when_it_is_read_is_a_failure(executor: BoundedToolExecutor, returned: object) -> None:
    def give() -> object:
        return returned

    outcome = run(executor, make_tool(give))
    assert isinstance(outcome, ToolFailure)
    assert outcome.error_type == "SystemExit"


def take_date(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("function", "error", "error_type", "retryable"),
    [
        (raise_plain, "ValueError: bad value", "ValueError", False),
        (raise_retryable, "UnavailableError", "UnavailableError", True),
        (raise_exit, "SystemExit: 3", "SystemExit", False),
        (raise_async, "KeyError: 'k'", "KeyError", False),
        (raise_async_exit, "SystemExit: 3", "SystemExit", False),
        (raise_async_interrupt, "KeyboardInterrupt", "KeyboardInterrupt", False),
        (raise_long, "ValueError: " + "x" * 1985 + "...", "ValueError", False),
    ],
)
def test_what_a_function_raises_becomes_one_line(
    executor: BoundedToolExecutor, function: Callable[[], Any], error: str, error_type: str, retryable: bool
) -> None:
    outcome = run(executor, make_tool(function))

    assert isinstance(outcome, ToolFailure)
    assert (outcome.error, outcome.error_type, outcome.retryable) == (error, error_type, retryable)


def test_arguments_that_do_not_fit_the_annotations_are_refused_in_a_plain_sentence(
    executor: BoundedToolExecutor,
) -> None:
    outcome = run(executor, make_tool(take_date), {"n": "x"})

    assert isinstance(outcome, ToolDenied)
    assert outcome.reason == "validation"
    assert outcome.message == (
        "The arguments of take_date were refused: n: it should be a valid integer, unable to parse string as an "
        "integer. Correct them and call again."
    )


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_tool_can_block_itself(executor: BoundedToolExecutor, ends: str) -> None:
    def block(ctx: RunContext) -> None:
        ctx.block_tool()
        if ends == "raises":
            raise ValueError

    outcome = run(executor, make_tool(block))
    assert isinstance(outcome, ToolSuccess | ToolFailure)
    assert outcome.block_tool


def test_a_result_without_json_form_is_a_failure(executor: BoundedToolExecutor) -> None:
    def circle() -> list[Any]:
        ring: list[Any] = []
        ring.append(ring)
        return ring

    outcome = run(executor, make_tool(circle))
    assert isinstance(outcome, ToolFailure)
    assert "JSON" in outcome.error


def test_what_a_tool_raises_is_shown_in_full_where_it_is_wanted_and_nowhere_else(
    executor: BoundedToolExecutor, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRACEBACK_VARIABLE, raising=False)
    run(executor, make_tool(raise_plain))
    assert capfd.readouterr().err == ""
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    run(executor, make_tool(raise_plain))
    said = capfd.readouterr().err
    assert "raised\nTraceback (most recent call last):\n" in said
    assert "in raise_plain" in said
    assert "brainq/engine/calls" not in said, "the way there is brainq's own"
    run(executor, make_tool(raise_own_words))
    assert capfd.readouterr().err == "", "a ToolError is the tool's answer, not its fault"


def raise_own_words() -> None:
    raise ToolError("no such item")
