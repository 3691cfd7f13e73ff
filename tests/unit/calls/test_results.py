"""What a tool returns becomes JSON, and stays small."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from typing import Any

import pytest
from pydantic import BaseModel

from brainq.calls.function_run import MAX_ERROR_CHARS, MAX_RESULT_CHARS, jsonable, one_line


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
