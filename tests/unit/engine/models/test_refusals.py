"""One table of refusals: what services really send, through the real SDKs, and what no row names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.error_body import error_detail, wait_in_words
from brainq.adapters.models.failures import from_error_event, from_status
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.refusals import decide
from brainq.engine.models.asking.retry import ServiceError
from brainq.errors import ProviderError
from lab import refusals as written
from tests.unit.engine.models.requests import request
from tests.unit.engine.models.vendor_wires import Answered, refusal, stream

ROWS = written.examples()
WIRES = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}
ONCE_ONLY = ("broken",)
PROVIDERS = Path(__file__).parents[4] / "docs" / "guides" / "providers.md"


def _of(number: int, row: dict[str, Any]) -> Any:
    return pytest.param(row, id=f"{number}-{row['service']}-{row['status']}")


@pytest.mark.parametrize("row", [_of(number, row) for number, row in enumerate(ROWS)])
def test_each_refusal_that_was_seen_has_its_kind(row: dict[str, Any]) -> None:
    answer = stream(row["body"]) if row["status"] == 200 else refusal(row["status"], row["body"])
    asked = Answered(WIRES[row.get("wire", "openai")], [answer])
    with pytest.raises(ProviderError) as caught:
        list(asked.provider.generate_stream(request(max_output_tokens=100)))
    error = caught.value
    assert (error.kind, error.retryable) == (row["kind"], row["retry"])
    asked_again = row["retry"] and row["kind"] not in ONCE_ONLY and not row.get("wait_s", 0) >= 60
    learns = "max_tokens" in row["body"] and "unsupported_parameter" in row["body"]
    assert (len(asked.bodies) > 1) == (asked_again or learns)
    if "wait_s" in row:
        assert getattr(error, "retry_after_s", None) == pytest.approx(row["wait_s"])
    assert "{'" not in str(error), "a Python object is shown"


def test_every_service_of_the_list_has_rows() -> None:
    hosted = "OpenAI|Azure OpenAI|Anthropic|Gemini|Bedrock|xAI|Groq|Mistral|OpenRouter"
    own = "Ollama|vLLM|TGI|LM Studio|llama.cpp|LiteLLM"
    assert set(f"{hosted}|{own}".split("|")) <= {row["service"] for row in ROWS}
    assert all(row["source"] for row in ROWS)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        *((status, "refused", False) for status in (400, 406, 411, 414, 415, 418, 422, 431, 470)),
        *((status, "denied", False) for status in (401, 403, 404, 405, 407, 410, 451, 511)),
        *(
            (status, "server", True)
            for status in (408, 409, 421, 423, 424, 425, 498, 499, 500, 502, 503, 504, 520, 529)
        ),
        *((status, "refused", False) for status in (501, 505, 508)),
        (402, "quota", False),
        (413, "too_long", False),
        (429, "rate_limited", True),
    ],
)
def test_words_that_nobody_knows_are_judged_by_their_status(status: int, kind: str, retryable: bool) -> None:
    for body in (None, "", "<html><head><title>Oh</title></head>", {"error": {"message": "zork", "code": "zork_42"}}):
        error = from_status("p", status, {}, body)
        assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503])
@pytest.mark.parametrize("shape", ["{code: n}", "{code: 'n'}", "{status_code: n}", "{http_status_code: n}"])
def test_a_number_inside_a_stream_is_the_status(status: int, shape: str) -> None:
    name = shape.strip("{}").split(":")[0]
    body = {"error": {"message": "zork", name: str(status) if "'" in shape else status}}
    inside, real = from_error_event("p", body), from_status("p", status, {}, body)
    assert (inside.kind, inside.retryable) == (real.kind, real.retryable)


def test_a_number_that_is_no_status_says_nothing() -> None:
    for code in ("3505", "1300", 7, True, 0, -1, 999, "42"):
        assert from_error_event("p", {"error": {"message": "zork", "code": code}}).kind == "server"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Limit 30000, Requested 43210", "over_limit"),
        ("limit: 30,000 tokens, requested: 43,210", "over_limit"),
        ("Limit 30000, Used 29000, Requested 43210", "over_limit"),
        ("Limit 30000, Used 29000, Requested 4321. Please try again in 6m0s", "rate_limited"),
        ("Limit 30000, Requested 30000", "rate_limited"),
        ("slow down", "rate_limited"),
    ],
)
def test_a_request_that_is_more_than_the_limit_never_passes(text: str, kind: str) -> None:
    error = from_status("p", 429, {}, {"error": {"message": text, "code": "rate_limit_exceeded"}})
    assert (error.kind, error.retryable) == (kind, kind == "rate_limited")


@pytest.mark.parametrize(
    "text",
    [
        "Prompt contains 300000 tokens and 0 images, too large for model with 262144 maximum context length",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        "Your request exceeded model token limit: 200000 (requested: 300000)",
        "Range of input length should be [1, 131072]",
        "Prompt exceeds max length",
        "Requested tokens (2285) exceed context window of 2048",
        "Input length 1048826 exceeds the maximum length 1048566",
        "Please reduce the length of the messages or completion.",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    ],
)
def test_too_long_in_more_words(text: str) -> None:
    assert from_status("p", 400, {}, {"error": {"message": text}}).kind == "too_long"
    assert from_error_event("p", {"error": {"message": text, "code": 400}}).kind == "too_long"


@pytest.mark.parametrize(
    "text",
    [
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got 67",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got array with length 140",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6003116 bytes > 5242880 bytes",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude",
        "name must be at most 64 characters, got 67",
        "messages: roles must alternate between user and assistant",
    ],
)
def test_what_is_about_something_else_is_not_too_long(text: str) -> None:
    assert from_status("p", 400, {}, {"error": {"message": text}}).kind == "refused"


def test_a_limit_of_a_minute_in_the_words_of_a_bill_is_waited_for() -> None:
    text = (
        "Rate limit reached. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
    )
    assert from_status("p", 429, {}, {"error": {"message": text}}).kind == "rate_limited"


def test_advice_fits_the_refusal() -> None:
    region = {"error": {"message": "Country, region, or territory not supported", "code": "unsupported_country"}}
    assert "API key" not in str(from_status("openai", 403, {}, region))
    assert "the place" in str(from_status("openai", 403, {}, region))
    assert "check the API key of openai" in str(from_status("openai", 401, {}, None))
    assert "name of the model" in str(from_status("openai", 404, {}, None))


@pytest.mark.parametrize(
    ("body", "message", "codes"),
    [
        ([{"error": {"code": 400, "message": "no", "status": "INVALID"}}], "no", ("INVALID",)),
        ('[{"error": {"message": "no"}}]', "no", ()),
        ({"code": "Client error", "error": "no"}, "no", ("Client error",)),
        ({"Error": {"Message": "no", "Code": "ValidationException"}}, "no", ("ValidationException",)),
        ({"detail": [{"loc": ["body", "x"], "msg": "extra", "input": "secret"}]}, "['body', 'x']: extra", ()),
        ({"detail": {"error_type": "overloaded", "message": "no"}}, "no", ("overloaded",)),
        ({"error": {"error": {"message": "no", "code": 402}, "code": 402}}, "no", ()),
        ({"error": {"message": "outer", "metadata": {"raw": '{"error":{"message":"inner"}}'}}}, "outer: inner", ()),
        ("<html>\n<head><title>502 Bad Gateway</title></head><body>x</body></html>", "502 Bad Gateway", ()),
        ("plain", "plain", ()),
        (None, "", ()),
        (7, "", ()),
        ({}, "", ()),
    ],
)
def test_bodies_are_read_in_every_shape(body: Any, message: str, codes: tuple[str, ...]) -> None:
    detail = error_detail(body)
    assert (detail.message, detail.codes) == (message, codes)


def test_a_body_without_end_is_read_to_its_depth() -> None:
    body: dict[str, Any] = {"message": "deep"}
    for _ in range(5_000):
        body = {"error": body}
    assert error_detail(body).message == ""
    assert decide(None, error_detail(body)).kind == "server"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 3.89s. Visit", 3.89),
        ("try again in 644ms.", 0.644),
        ("Please try again in 9m38.016s.", 578.016),
        ("Please retry after 86400 seconds.", 86400.0),
        ("Please retry in 36.98s.", 36.98),
        ("Try again in 1 minute", 60.0),
        ("try again in 5 more", None),
        ("Please try again later.", None),
    ],
)
def test_a_wait_in_words(text: str, seconds: float | None) -> None:
    found = wait_in_words(text)
    assert found is None if seconds is None else found == pytest.approx(seconds)


def test_how_long_to_wait_is_read_from_the_body_where_no_header_says_it() -> None:
    google = {"error": {"code": 429, "details": [{"@type": "RetryInfo", "retryDelay": "36s"}]}}
    assert from_status("p", 429, {}, google).retry_after_s == 36.0
    assert from_status("p", 429, {"retry-after": "2"}, google).retry_after_s == 2.0
    assert from_error_event("p", google).retry_after_s == 36.0
    assert from_status("p", 503, {}, {"error": "Server busy, retry in 4 s"}).retry_after_s == 4.0


def test_what_cannot_succeed_has_no_time_to_wait() -> None:
    error = from_status("p", 402, {"retry-after": "7"}, None)
    assert isinstance(error, ServiceError)
    assert error.retry_after_s is None


def test_the_table_has_a_row_for_each_refusal() -> None:
    table = written.table()
    assert table.count("\n| ") == len(ROWS)
    assert table.count("| too_long |") > 20


def test_the_page_of_providers_has_each_kinds_answer_of_the_gateway() -> None:
    rows = [line for line in PROVIDERS.read_text().splitlines() if line.startswith("| `")]
    for kind in {one["kind"] for one in written.examples()}:
        (row,) = [line for line in rows if f"`{kind}`" in line.split(" | ")[0] and line.endswith("` |")]
        assert written.gateway_answer(kind) in row
