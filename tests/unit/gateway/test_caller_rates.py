"""How many requests a second a name has."""

from __future__ import annotations

import pytest

from brainq.gateway.edge.caller_rates import BURST_S, MAX_NAMES, RateLimiter


def test_a_rate_grants_a_burst_then_as_much_as_time_gives() -> None:
    now = [0.0]
    rate = RateLimiter(2, lambda: now[0])
    most = int(2 * BURST_S)
    assert [rate.take("a") for _ in range(most)] == [0.0] * most
    assert rate.take("a") == pytest.approx(0.5)
    assert rate.take("b") == 0.0, "each has his own"
    now[0] += 0.5
    assert rate.take("a") == 0.0
    assert rate.take("a") > 0


def test_a_rate_keeps_only_those_that_asked_last() -> None:
    rate = RateLimiter(0.1, lambda: 0.0)
    assert rate.take("first") == 0.0
    assert rate.take("first") > 0
    for number in range(MAX_NAMES):
        rate.take(str(number))
    assert rate.take("first") == 0.0


def test_what_is_given_back_is_not_counted() -> None:
    rate = RateLimiter(0.1, lambda: 0.0)
    for _ in range(9):
        assert rate.take("a") == 0.0
        rate.give_back("a")
    assert (rate.take("a"), bool(rate.take("a"))) == (0.0, True)
    rate.give_back("nobody")
