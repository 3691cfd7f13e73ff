"""How long a follower still waits."""

from __future__ import annotations

import math

import pytest

from brainq import ResultTimeout
from brainq.client.waiting import WaitLimits


def test_without_limits_it_waits_for_ever() -> None:
    patience = WaitLimits("t-1", None, None, 100.0)
    assert math.isinf(patience.remaining_s(1e9))
    patience.check(1e9)


def test_the_whole_wait_is_over_however_much_was_heard() -> None:
    patience = WaitLimits("t-1", 10.0, None, 100.0)
    patience.event_arrived(109.0)
    assert patience.remaining_s(109.0) == 1.0
    patience.check(109.9)
    with pytest.raises(ResultTimeout, match=r"'t-1' has no result after 10 s"):
        patience.check(110.0)


def test_the_silence_begins_anew_with_each_event() -> None:
    patience = WaitLimits("t-1", 60.0, 5.0, 100.0)
    patience.event_arrived(104.0)
    assert patience.remaining_s(105.0) == 4.0
    patience.check(108.9)
    with pytest.raises(ResultTimeout, match="no event for 5 s"):
        patience.check(109.0)


def test_nothing_is_left_of_a_wait_that_is_over() -> None:
    assert WaitLimits("t-1", 0, None, 100.0).remaining_s(103.0) == 0.0
