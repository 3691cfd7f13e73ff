"""The brain of the upgrade, and what its report takes for right."""

from __future__ import annotations

from collections import Counter

import pytest

from brainq.engine.models.costs import unpriced_models
from lab.upgrade import shop
from lab.upgrade.__main__ import Report


def test_the_worst_case_of_its_calls_is_known_so_that_a_budget_lets_them_run_at_the_same_time() -> None:
    assert shop.brain.limits.max_output_tokens is not None
    assert not unpriced_models([shop.brain.model])


def test_a_run_is_right_when_every_turn_completed_and_nothing_is_lost_or_doubled() -> None:
    assert Report(turns=2, endings=Counter(completed=2)).is_right


@pytest.mark.parametrize(
    "report",
    [
        Report(),
        Report(turns=2, endings=Counter(completed=1), lost=["t2"]),
        Report(turns=2, endings=Counter(completed=1, failed=1)),
        Report(turns=1, endings=Counter(completed=1), doubled=["order t1 c1-2"]),
        Report(turns=1, endings=Counter(completed=1), missing=["t1"]),
    ],
    ids=["nothing ran", "lost", "failed", "doubled", "missing"],
)
def test_anything_else_is_not(report: Report) -> None:
    assert not report.is_right
