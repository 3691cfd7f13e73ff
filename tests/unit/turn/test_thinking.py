"""When a turn reflects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.brain import ThinkLevel
from brainq.turn.reflection import PERIODS, PREFIXES, ThinkingManager, should_reflect
from tests.unit.turn.conversations import unhurried


@pytest.mark.parametrize(
    ("level", "steps"),
    [("off", []), ("low", [8, 16]), ("medium", [4, 8, 12, 16]), ("high", [2, 4, 6, 8, 10, 12, 14, 16])],
)
def test_the_periodic_steps_of_a_level(level: str, steps: list[int]) -> None:
    manager = ThinkingManager(level)
    assert [step for step in range(17) if manager.should_reflect(step, 0)] == steps


def test_each_level_has_a_prefix_of_its_own_and_off_has_none() -> None:
    assert PREFIXES[ThinkLevel.OFF] == ""
    assert len({PREFIXES[level] for level in ThinkLevel}) == len(ThinkLevel)


@unhurried
@given(st.sampled_from(ThinkLevel), st.integers(0, 50), st.integers(0, 5), st.integers(0, 50))
def test_the_rule(level: ThinkLevel, step: int, failed: int, reflected: int) -> None:
    due = should_reflect(level, step, failed, reflected)
    if level is ThinkLevel.OFF or step == 0 or reflected >= step:
        assert not due
    elif failed:
        assert due
    else:
        assert due == (step % (PERIODS[level] or 1) == 0)
    assert ThinkingManager(level).on_turn_start(3).should_reflect(step, failed, reflected) == due


def test_each_turn_has_its_number() -> None:
    manager = ThinkingManager("high")
    assert manager.on_turn_start(7) == ThinkingManager(ThinkLevel.HIGH, 7)
    assert manager.turn_number == 0, "nothing is kept"
    with pytest.raises(ValueError, match="turn_number=0"):
        manager.on_turn_start(0)
    with pytest.raises(ValueError, match="very"):
        ThinkingManager("very")
