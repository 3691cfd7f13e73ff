"""rate_report.lua: what a stream that goes on has told of its usage."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import Rig
from tests.lua.test_rate_tokens import ESTIMATE, ask, rule


def report(rig: Rig, place: str, counted: int, output: int = 0, is_all: int = 1) -> list[Any]:
    return rig.run(
        "rate_report",
        **{part: rig.keys.rate("openai:gpt", part) for part in ("places", "rule")},
        place=place,
        used=counted + output,
        estimated=ESTIMATE,
        counted=counted,
        is_all=is_all,
    )


def test_a_streams_first_report_tells_what_its_estimate_was_worth(rig: Rig) -> None:
    ask(rig, "p0", output=100)
    assert rule(rig, "sum") == str(4 * ESTIMATE + 100)
    assert report(rig, "p0", counted=500, output=100) == ["OK"]
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("600", "1")
    assert report(rig, "p0", counted=500, output=100) == ["OK"]
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("600", "1"), "run twice it is run once"


def test_a_report_of_an_answer_without_a_limit_only_raises(rig: Rig) -> None:
    ask(rig, "p0")
    report(rig, "p0", counted=500, is_all=0)
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == (str(4 * ESTIMATE), None)
    report(rig, "p0", counted=3_000, is_all=0)
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("3000", "1")


def test_a_report_of_a_place_that_counts_no_more_changes_nothing(rig: Rig) -> None:
    assert report(rig, "p0", counted=500) == ["GONE"]
    assert rule(rig, "sum") is None
