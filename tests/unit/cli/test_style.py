"""Durations and safe text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, ago, clean, counted, duration, short
from brainq.contracts.status import Effect, TraceStatus, TurnState


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1250, "1.2 s"),
        (59_949, "59.9 s"),
        (60_000, "1 min"),
        (245_000, "4 min 05 s"),
        (7_800_000, "2 h 10 min"),
        (273_600_000, "3 d 4 h"),
    ],
)
def test_durations_have_the_unit_a_person_would_use(ms: int, said: str) -> None:
    assert duration(ms) == said


def test_an_instant_is_told_by_its_distance() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert ago(now - timedelta(seconds=90), now) == "1 min 30 s ago"
    assert ago(now + timedelta(seconds=5), now) == "0 ms ago"


def test_text_is_cut_to_one_line_of_its_width() -> None:
    assert short("a\nb\tc", 10) == "a b c"
    assert short("x" * 20, 10) == "x" * 9 + "…"
    assert clean("a\x1b[31m\r\nb") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}\nb"


def test_numbers_and_nouns_agree() -> None:
    assert [counted(1, "call"), counted(2, "call"), counted(2, "try", "tries")] == ["1 call", "2 calls", "2 tries"]


def test_every_effect_and_status_has_a_colour() -> None:
    assert {effect.value for effect in Effect} <= EFFECT_STYLES.keys()
    assert {status.value for status in TraceStatus} | {state.value for state in TurnState} <= STATUS_STYLES.keys()
