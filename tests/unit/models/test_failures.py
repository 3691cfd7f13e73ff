from __future__ import annotations

import pytest

from brainq.models.vendors.failures import from_error_event, from_status, refused_parameter, retry_after_s

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
