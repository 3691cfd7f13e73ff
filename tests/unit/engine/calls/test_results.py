"""What a tool returns or raises becomes JSON, and stays small."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from brainq.contracts.call import ToolDenied, ToolFailure, ToolSuccess, ToolUnknown
from brainq.engine.calls import function_run
from brainq.engine.calls.executor import TOOL_LOOP, BoundedToolExecutor
from brainq.engine.calls.function_run import MAX_ERROR_CHARS, MAX_RESULT_CHARS, jsonable, one_line
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import OutcomeUnknown, ToolError
from brainq.engine.tools.tool import make_tool
from tests.unit.engine.calls.support import run


class Model(BaseModel):
    when: datetime.date


class Colour(enum.Enum):
    RED = "red"


class Word(str):
    __slots__ = ()


@dataclasses.dataclass
class Point:
    x: int
    tags: set[str]


class Odd:
    def __str__(self) -> str:
        return "an odd thing"


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (2**70, 2**70),
        ("text", "text"),
        (Word("word"), "word"),
        ("half \ud83d", "half \ufffd"),
        ("pair \ud83d\ude00", "pair 😀"),
        ({"\ud83d\ude00": b"\xff"}, {"😀": "_w=="}),
        (["half \ud83d"], ["half \ufffd"]),
        (float("nan"), "NaN"),
        ([float("inf")], ["Infinity"]),
        (Model(when=datetime.date(2024, 2, 29)), {"when": "2024-02-29"}),
        (Point(1, {"a"}), {"x": 1, "tags": ["a"]}),
        ((1, Colour.RED), [1, "red"]),
        ({1: decimal.Decimal("1.5")}, {"1": "1.5"}),
        (b"text", "text"),
        (b"\xff\xfe", "__4="),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Odd(), "an odd thing"),
        ([Odd()], ["an odd thing"]),
    ],
)
def test_values_become_json(value: Any, plain: Any) -> None:
    found = jsonable(value)

    assert found == plain
    assert type(found) is type(plain)
    json.dumps(found, allow_nan=False).encode()


@pytest.mark.parametrize("value", ["x" * (MAX_RESULT_CHARS + 1), ["x" * 100] * 5_000])
def test_what_is_too_long_is_cut_and_says_so(value: Any) -> None:
    found = jsonable(value)

    assert isinstance(found, str)
    assert len(found) <= MAX_RESULT_CHARS
    assert found.endswith(" characters]")
    assert "[cut: the first " in found


def test_the_longest_result_is_kept_whole() -> None:
    assert jsonable("x" * MAX_RESULT_CHARS) == "x" * MAX_RESULT_CHARS


def test_errors_become_one_line() -> None:
    assert one_line(ValueError("a\n\tb")) == "ValueError: a b"
    assert one_line(ValueError()) == "ValueError"
    assert one_line(UnprintableError()) == "UnprintableError"
    assert len(one_line(ValueError("x" * 9_999))) == MAX_ERROR_CHARS
    one_line(ValueError("\ud800")).encode()


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
    assert "test_results.py" in one.where
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
    assert caplog.text.count("test_results.Other, which has no JSON form") == 1
