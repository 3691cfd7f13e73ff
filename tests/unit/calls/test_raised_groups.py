"""Tools that raise groups of exceptions, and results that are not JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from brainq.calls import function_run
from brainq.calls.executor import TOOL_LOOP, BoundedToolExecutor
from brainq.contracts.call import ToolDenied, ToolFailure, ToolSuccess, ToolUnknown
from brainq.tools.context import RunContext
from brainq.tools.results import OutcomeUnknown, ToolError
from brainq.tools.tool import make_tool
from tests.unit.calls.support import run


@pytest.fixture
def executor() -> Iterator[BoundedToolExecutor]:
    executor = BoundedToolExecutor()
    yield executor
    executor.close()
    TOOL_LOOP.stop()


async def fail(error: Exception) -> None:
    raise error


async def in_task_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail(OSError("the disk is full")))


def several() -> None:
    raise ExceptionGroup("two", [OSError("the disk is full"), KeyError("b")])


def own_words() -> None:
    raise ExceptionGroup("one", [ToolError("Ask for less.", retryable=True)])


def in_doubt() -> None:
    raise ExceptionGroup("two", [ValueError("x"), ExceptionGroup("b", [OutcomeUnknown("It may be sent.")])])


def test_the_model_reads_the_leaves_of_a_group(executor: BoundedToolExecutor) -> None:
    one, both = run(executor, make_tool(in_task_group)), run(executor, make_tool(several))
    assert isinstance(one, ToolFailure)
    assert (one.error, one.error_type) == ("OSError: the disk is full", "OSError")
    assert "test_raised_groups.py" in one.where
    assert isinstance(both, ToolFailure)
    assert both.error == "OSError: the disk is full; KeyError: 'b'"
    assert both.error_type == "ExceptionGroup(OSError, KeyError)"


def test_a_tool_s_own_words_and_its_doubt_are_found_in_a_group(executor: BoundedToolExecutor) -> None:
    own, doubt = run(executor, make_tool(own_words)), run(executor, make_tool(in_doubt))
    assert isinstance(own, ToolFailure)
    assert (own.error, own.own_words, own.retryable) == ("Ask for less.", True, True)
    assert isinstance(doubt, ToolUnknown)
    assert doubt.message == "It may be sent."


def test_arguments_that_the_function_does_not_take_are_refused_before_it_runs(executor: BoundedToolExecutor) -> None:
    def noted(context: RunContext, **arguments: object) -> None:
        raise AssertionError

    refused = run(executor, make_tool(noted, parameters={"type": "object"}), {"context": 1})
    assert isinstance(refused, ToolDenied)
    assert "takes no argument 'context'" in refused.message


class Other:
    pass


def test_a_result_that_is_not_json_is_warned_of_once(
    executor: BoundedToolExecutor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_run, "_warned_types", set[str]())

    def other() -> dict[str, object]:
        return {"a": Other()}

    tool = make_tool(other)
    assert isinstance(run(executor, tool), ToolSuccess)
    assert isinstance(run(executor, tool), ToolSuccess)
    assert caplog.text.count("test_raised_groups.Other, which has no JSON form") == 1
