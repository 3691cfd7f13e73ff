"""None"""

from __future__ import annotations

import pytest

from brainq.adapters.models.failures import (
    from_error_event,
    from_status,
    read_rate_limits,
    refused_parameter,
    retry_after_s,
)
from brainq.contracts.rate import RateReport

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
LATER = "Wed, 21 Oct 2026 07:28:30 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": LATER, "date": DATE}, 30.0),
        ({"retry-after": DATE, "date": LATER}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "retryable"),
    [
        (429, {}, None, "rate_limited", True),
        (429, {}, {"code": "insufficient_quota", "message": "pay"}, "quota", False),
        (500, {}, "<html>", "server", True),
        (500, {"x-should-retry": "false"}, None, "server", False),
        (529, {}, {"error": {"type": "overloaded_error"}}, "server", True),
        (408, {}, None, "server", True),
        (409, {}, None, "server", True),
        (400, {}, {"error": {"message": "prompt is too long: 9 > 8"}}, "too_long", False),
        (400, {}, {"code": "context_length_exceeded"}, "too_long", False),
        (400, {}, {"error": {"type": "exceed_context_size_error"}}, "too_long", False),
        (413, {}, None, "too_long", False),
        (400, {}, {"error": "plain"}, "refused", False),
        (401, {}, {"message": "who?"}, "denied", False),
        (404, {}, None, "denied", False),
    ],
)
def test_statuses(status: int, headers: dict[str, str], body: object, kind: str, retryable: bool) -> None:
    error = from_status("acme", status, headers, body)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert f"acme: HTTP {status}" in str(error)


def test_messages_are_short_and_can_be_encoded() -> None:
    message = str(from_status("acme", 500, {}, "\ud83d" + "x" * 9_999))
    assert len(message) <= 300
    assert message.encode()


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"type": "overloaded_error", "message": "busy"}, "server", True),
        ({"type": "rate_limit_error"}, "rate_limited", True),
        ({"type": "invalid_request_error", "message": "bad"}, "refused", False),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, "too_long", False),
        ("plain words", "server", True),
    ],
)
def test_errors_inside_a_stream(error: object, kind: str, retryable: bool) -> None:
    found = from_error_event("acme", error)
    assert (found.kind, found.retryable) == (kind, retryable)


OPTIONAL = ("stream_options", "response_format", "output_config")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"message": "Unrecognized request argument supplied: stream_options"}, "stream_options"),
        (
            422,
            {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
            "stream_options",
        ),
        (422, {"detail": [{"loc": ["body", "x"], "msg": "extra", "input": "stream_options"}]}, None),
        (400, {"message": "response_format is not supported by this model"}, "response_format"),
        (400, {"message": "Invalid schema for response_format 'reply': 'oneOf' is not permitted"}, None),
        (400, {"error": {"message": "output_config.format.schema: 'minimum' is not supported"}}, None),
        (400, {"message": "messages must not be empty"}, None),
        (500, {"message": "unknown stream_options"}, None),
    ],
)
def test_only_an_unknown_parameter_is_left_out(status: int, body: object, expected: str | None) -> None:
    assert refused_parameter(status, body, OPTIONAL) == expected


# What services say of their limits in headers.


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
