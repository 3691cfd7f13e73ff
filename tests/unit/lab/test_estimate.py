"""The arithmetic of `python -m lab.estimate`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lab.estimate.ratios import Ratios, Sample, ratios
from lab.estimate.texts import text_samples
from lab.estimate.usage import usage_samples


def step(text: str, tokens: int | None, **extra: Any) -> dict[str, Any]:
    usage = None if tokens is None else {"in": tokens, "out": 1}
    return {"text": text, "calls": [], "results": [], "usage": usage, **extra}


def recording(path: Path, *sessions: dict[str, Any]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(session) + "\n" for session in sessions)
    return path


CALL = {
    "calls": [{"id": "a", "name": "look", "arguments": {}, "kind": "read"}],
    "results": [{"content": '{"found": ["' + "x" * 80 + '"]}', "error": False}],
}


def test_ratios_are_percentiles_and_the_ratio_of_the_sums() -> None:
    samples = [Sample(1, 2), Sample(30, 30), Sample(4, 2)]
    assert ratios(samples) == Ratios(3, 0.5, 1.0, 2.0, 35 / 34)
    with pytest.raises(ValueError, match="no samples"):
        ratios([])


def test_a_sample_is_what_was_added_between_two_steps(tmp_path: Path) -> None:
    turns = [
        {"user": "a" * 40, "steps": [step("", 100, **CALL), step("b" * 40, 150)]},
        {"user": "c" * 40, "steps": [step("d", 190)]},
        {"user": "e" * 40, "steps": [step("not counted", None), step("f", 200)]},
    ]
    shrinking = [{"user": "x", "steps": [step("y", 100)]}, {"user": "x", "steps": [step("y", 90)]}]
    path = recording(tmp_path / "sessions.gz", {"model": "m", "turns": turns}, {"model": "cached", "turns": shrinking})
    samples, left_out = usage_samples(path)
    # 4 a message; `look` and `{}` are a token each; 94 characters of JSON are 34; 40 of text are 10
    assert samples == {
        ("m", "tool results"): [Sample(4 + 1 + 1 + 4 + 34, 50)],
        ("m", "prose"): [Sample(4 + 10 + 4 + 10, 40)],
    }
    assert left_out == ["cached"]


def test_texts_are_counted_by_kind_and_short_ones_left_out(tmp_path: Path) -> None:
    turns = [{"user": "a" * 40, "steps": [step("short", None, **CALL)]}]
    path = recording(tmp_path / "sessions.gz", {"model": "m", "turns": turns})
    found = text_samples(path, lambda text: 10)
    assert found["English prose"] == [Sample(10, 10)]
    assert found["JSON tool results"] == [Sample(34, 10)]
    assert len(found["Python code"]) > 50
    assert found["Chinese"]
