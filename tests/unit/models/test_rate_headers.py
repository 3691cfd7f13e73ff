"""What services say of their limits in headers."""

from __future__ import annotations

import pytest

from brainq.contracts.rate import RateReport
from brainq.models.vendors.failures import read_rate_limits


def openai(limit: str, remaining: str, reset: str, what: str = "requests") -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{what}": limit,
        f"x-ratelimit-remaining-{what}": remaining,
        f"x-ratelimit-reset-{what}": reset,
    }


@pytest.mark.parametrize(
    ("headers", "requests"),
    [
        (openai("60", "59", "1s"), 60),
        (openai("10000", "9999", "6ms"), 10_000),
        (openai("500", "0", "1m0s"), 500),
        (openai("14400", "14370", "2m59.56s"), None),  # a day's, as Groq counts them
        (openai("10", "9", "100ms"), None),  # a second's
        (openai("60", "60", "0s"), None),
        (openai("60", "-1", "1s"), None),
        (openai("many", "1", "1s"), None),
        (openai("60", "59", "soon"), None),
        ({"x-ratelimit-limit-requests": "60"}, None),
        ({}, None),
    ],
)
def test_a_limit_counts_where_its_reset_fits_a_minute(headers: dict[str, str], requests: int | None) -> None:
    assert read_rate_limits(headers, 200) == RateReport(requests=requests)


def test_anthropics_resets_are_read_against_the_answers_own_date() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "10",
        "anthropic-ratelimit-requests-reset": "2031-01-05T10:00:48Z",
        "anthropic-ratelimit-tokens-limit": "80000",
        "anthropic-ratelimit-tokens-remaining": "40000",
        "anthropic-ratelimit-tokens-reset": "2031-01-05T10:00:30+00:00",
        "date": "Sun, 05 Jan 2031 10:00:00 GMT",
    }
    assert read_rate_limits(headers, 200) == RateReport(requests=50, tokens=80_000)


def test_only_a_429_stops() -> None:
    headers = openai("200000", "0", "1m", "tokens") | {"retry-after": "20"}
    assert read_rate_limits(headers, 429) == RateReport(tokens=200_000, stop_s=20.0)
    assert read_rate_limits(headers, 503) == RateReport(tokens=200_000)
    assert read_rate_limits({"retry-after-ms": "1500"}, 429).stop_s == 1.5
