"""How full the context is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.engine.turn.prompt.compaction import (
    HIGHEST_RATIO,
    LOWEST_RATIO,
    STEADY_TOKENS,
    ContextTracker,
    level_of,
)
from tests.unit.engine.turn.conversations import unhurried


@pytest.mark.parametrize(
    ("tokens", "level"),
    [(0, "ok"), (699, "ok"), (700, "warning"), (849, "warning"), (850, "critical"), (2000, "critical")],
)
def test_levels(tokens: int, level: str) -> None:
    assert level_of(tokens, 1000) == level


def test_without_a_report_the_estimate_counts() -> None:
    tracker = ContextTracker.from_state(1000, (0, 0))
    assert (tracker.tokens(500), tracker.warning_percent(699), tracker.warning_percent(850)) == (500, 0, 85)
    assert tracker.after(0, 500) == tracker.after(500, 0) == tracker


def test_a_report_corrects_the_estimates_after_it() -> None:
    tracker = ContextTracker.from_state(10_000, (6000, 4000))
    assert (tracker.ratio, tracker.tokens(4000), tracker.tokens(5000)) == (1.5, 6000, 7500)
    assert (tracker.warning_percent(4000), tracker.warning_percent(6000)) == (0, 90)
    assert tracker.after(3000, 6000).tokens(6000) == 3000


def test_a_wrong_report_is_believed_only_so_far() -> None:
    assert ContextTracker.from_state(1000, (3, 600)).tokens(600) == 300
    assert ContextTracker.from_state(1000, (90_000, 600)).tokens(200) == 600


@unhurried
@given(st.integers(0, 10**7), st.integers(1, 10**7), st.integers(0, 10**7))
def test_counting_both_ways(reported: int, estimated: int, tokens: int) -> None:
    tracker = ContextTracker.from_state(200_000, (reported, estimated))
    assert LOWEST_RATIO <= tracker.ratio <= HIGHEST_RATIO
    assert tracker.tokens(tracker.estimate_for(tokens)) <= tokens + 1
    if reported and estimated >= STEADY_TOKENS and LOWEST_RATIO <= reported / estimated <= HIGHEST_RATIO:
        assert abs(tracker.tokens(estimated) - reported) <= 1


def test_a_tiny_request_says_little_about_text() -> None:
    """What a service adds of its own weighs much in it."""
    assert ContextTracker.from_state(200_000, (450, 88)).tokens(60_000) == 60_000
