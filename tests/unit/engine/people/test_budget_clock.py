"""The clock by which a process knows in which window of a budget it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.contracts.budgets import Budget
from brainq.engine.people import budgets
from brainq.engine.people.budgets import READ_AGAIN_S, BudgetDesk

HOUR_MS = 3_600_000


class Counters:
    """Redis' clock, which may be away."""

    def __init__(self) -> None:
        self.at_ms = 10 * HOUR_MS
        self.is_away = False
        self.asked = 0

    def now_ms(self) -> int:
        self.asked += 1
        if self.is_away:
            raise ConnectionError
        return self.at_ms


class Rows:
    def standing(self) -> list[Budget]:
        return []


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """This machine's own clock, in seconds."""
    clock = [100.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def test_a_clock_that_was_put_right_is_heard_of_within_a_minute(here: list[float]) -> None:
    redis = Counters()
    keeper = BudgetDesk(
        rows=cast("Any", Rows()),
        counters=cast("Any", redis),
        defaults=(Budget(scope="all", per="hour", usd=1.0),),
        zone="UTC",
        listen=lambda: None,
    )

    def begun() -> int:
        return keeper.windows("s1", "b")[0].starts[1] // HOUR_MS

    assert (begun(), begun(), redis.asked) == (10, 10, 1)
    redis.at_ms += 5 * HOUR_MS  # or this machine was suspended: its own clock stood still
    here[0] += READ_AGAIN_S
    redis.is_away = True
    assert begun() == 10
    here[0] += READ_AGAIN_S
    redis.is_away = False
    assert begun() == 15
