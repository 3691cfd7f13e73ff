"""What a service refuses: answers that nobody may see, and parameters that it does not take."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.failures import refused_parameter
from brainq.adapters.models.open_answer import sse_events
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.contracts.model_options import ModelOptions
from brainq.engine.models.asking.bill import Bill
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.asking.permits import stream_with_permits
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.errors import ProviderError
from tests.support.stand_in import stand_in
from tests.unit.engine.models.requests import WEATHER, request
from tests.unit.engine.models.test_permits import Limits
from tests.unit.engine.models.vendor_wires import HELLO, Answered, hello_chunks, refusal, stream

# Answers that are no reply: what is sent again, how often, to whom next, and what of it is charged.


CREDITS = {"error": {"message": "Insufficient credits.", "code": 402}}
LIMITED = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"retry_after_seconds": 30}}}
BROKEN = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<x>"}}


def error_of(asked: Answered, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        list(asked.provider.generate_stream(request(**changes)))
    return caught.value


@pytest.mark.parametrize(
    ("answer", "kind", "tries"),
    [
        (stream(CREDITS), "quota", 1),
        (refusal(200, CREDITS), "quota", 1),
        (refusal(200, {"detail": "Unauthorized"}), "server", 8),
        (stream({"object": "error", "message": "The model `x` does not exist.", "code": 404}), "denied", 1),
        (httpx2.Response(200, headers={"content-type": "text/html"}, text="<html><title>Sign in</title>"), "denied", 1),
        (refusal(200, ""), "stream", 8),
        (refusal(307, "", location="http://svc.test/v1/chat/completions"), "connection", 1),
        (refusal(304), "denied", 1),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), "connection", 1),
        (httpx2.ConnectError("Connection refused"), "connection", 8),
        (refusal(502, "<html><title>502 Bad Gateway</title>"), "server", 8),
        (refusal(425), "server", 8),
        (refusal(501), "refused", 1),
        (stream(BROKEN), "broken", 1),
        (refusal(400, BROKEN), "broken", 1),
    ],
)
def test_only_what_can_succeed_is_sent_again(answer: Any, kind: str, tries: int) -> None:
    asked = Answered(OpenAIProvider, [answer])
    error = error_of(asked)
    requests = 1 if kind == "connection" and tries == 1 else len(asked.bodies)
    assert (error.kind, requests) == (kind, tries)


def test_a_redirect_loop_is_not_tried_again() -> None:
    asked = Answered(OpenAIProvider, [refusal(307, "", location="http://svc.test/v1/chat/completions")])
    error = error_of(asked)
    assert (error.retryable, len(asked.bodies)) == (False, 21)  # the redirects of one try
    assert "check the address" in str(error)


def test_the_title_of_a_page_is_shown_and_no_markup() -> None:
    page = httpx2.Response(200, headers={"content-type": "text/html"}, text="<html><title>Sign in</title>")
    for error in (
        error_of(Answered(OpenAIProvider, [page])),
        error_of(Answered(OpenAIProvider, [refusal(403, "<html><title>Sign in</title>")])),
    ):
        assert "Sign in" in str(error)
        assert "<" not in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        refusal(402, CREDITS),
        stream(CREDITS),
        refusal(401),
        refusal(403),
        refusal(404),
        refusal(429, {"error": {"message": "Request too large: Limit 10, Requested 20"}}),
        refusal(429, {"error": {"type": "insufficient_quota"}}),
    ],
)
def test_the_next_member_is_asked_at_once(answer: Any) -> None:
    waits: list[float] = []
    first = Answered(OpenAIProvider, [answer], RetryPolicy(sleep=waits.append))
    second = Answered(OpenAIProvider, [stream(*hello_chunks())], name="second")
    both = Fallback([first.provider, second.provider])
    *_, last = both.generate_stream(request())
    assert last.reply is not None
    assert last.reply.text == "Hello."
    assert (len(first.bodies), len(second.bodies), waits) == (1, 1, [])


@pytest.mark.parametrize("answer", [refusal(400, {"error": {"code": "content_filter"}}), refusal(413), refusal(422)])
def test_no_other_member_is_asked_what_was_refused_for_what_it_is(answer: Any) -> None:
    first = Answered(OpenAIProvider, [answer])
    second = Answered(OpenAIProvider, [stream(*hello_chunks())], name="second")
    with pytest.raises(ProviderError):
        list(Fallback([first.provider, second.provider]).generate_stream(request()))
    assert second.bodies == []


@pytest.mark.parametrize("answer", [refusal(429, LIMITED), stream(LIMITED), refusal(429, "", retry_after="30")])
def test_a_limit_in_whatever_answer_stops_the_fleet(answer: Any) -> None:
    limits, waits = Limits(any_limited=False), list[float]()
    asked = Answered(OpenAIProvider, [answer, stream(*hello_chunks())], RetryPolicy(sleep=waits.append))
    with PermitPolicy(stand_in(limits)).activate():
        *_, last = stream_with_permits(asked.provider, request())
    assert last.reply is not None
    assert [report.stop_s for *_, report in limits.settled] == [30.0, 0.0]
    assert waits == [0.0], "the next try waits for its permit, and not twice"


@pytest.mark.parametrize("answer", [refusal(400, BROKEN), stream(BROKEN)])
def test_a_reply_that_the_service_could_not_use_is_charged(answer: Any) -> None:
    asked, bill = Answered(OpenAIProvider, [answer]), Bill()
    with bill.activate(), pytest.raises(ProviderError) as caught:
        list(stream_with_permits(asked.provider, request()))
    (lost,) = bill.close(caught.value)
    assert lost.usage.input_tokens > 0
    assert lost.usage.estimated


@pytest.mark.parametrize("status", [401, 402, 413, 429, 500])
def test_a_refusal_costs_nothing(status: int) -> None:
    asked, bill = Answered(OpenAIProvider, [refusal(status)], RetryPolicy(max_attempts=1)), Bill()
    with bill.activate(), pytest.raises(ProviderError) as caught:
        list(stream_with_permits(asked.provider, request()))
    assert bill.close(caught.value) == ()


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_lines_end_with_any_of_the_three(end: str, size: int) -> None:
    line = end[: len(end) // 2]
    text = f': ping{end}data: {{"a": 1}}{end}event: x{line}data: {{"b":{line}data: 2}}{end}'
    data = f"{text}data: [DONE]{end}".encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(sse_events(pieces)) == [{"a": 1}, {"b": 2}, None]


def test_an_event_that_ends_with_cr_is_there_before_the_next_piece() -> None:
    def pieces() -> Any:
        yield b'data: {"a": 1}\r\r'
        raise AssertionError("the event was held back")

    assert next(sse_events(pieces())) == {"a": 1}


def test_a_stream_with_cr_alone_is_a_reply() -> None:
    asked = Answered(OpenAIProvider, [stream(*hello_chunks(), end="\r\r")])
    *_, last = asked.provider.generate_stream(request())
    assert last.reply is not None
    assert (last.reply.text, len(asked.bodies)) == ("Hello.", 1)


def test_a_body_of_gemini_is_read_and_not_shown_as_python() -> None:
    body = [{"error": {"code": 400, "message": "User location is not supported for the API use."}}]
    error = error_of(Answered(OpenAIProvider, [refusal(400, body)]))
    assert str(error).startswith("openai: HTTP 400: User location is not supported for the API use.; ")


def test_anthropics_wire_reads_bodies_of_others() -> None:
    asked = Answered(AnthropicProvider, [refusal(400, {"message": "Input is too long for requested model."})])
    assert error_of(asked, max_output_tokens=9).kind == "too_long"
    assert Answered(OpenAIProvider, [refusal(200, HELLO)]).provider.generate(request()).text == "Hello."


# What a model does not take is learned from the name in its refusal, once a process, for every purpose.


USE_THE_OTHER = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}
WORDS_ONLY = {"error": {"message": USE_THE_OTHER["error"]["message"], "code": "invalid_request_body"}}


@pytest.mark.parametrize("body", [USE_THE_OTHER, WORDS_ONLY])
def test_the_limit_of_a_reply_has_the_name_that_the_model_knows(body: Any) -> None:
    asked = Answered(OpenAIProvider, [refusal(400, body), refusal(200, HELLO)])
    for _ in range(2):
        assert asked.provider.generate(request(max_output_tokens=50)).text == "Hello."
    assert [(sent.get("max_tokens"), sent.get("max_completion_tokens")) for sent in asked.bodies] == [
        (50, None),
        (None, 50),
        (None, 50),
    ]


def test_a_server_that_knows_the_old_name_only_gets_it() -> None:
    body = {"error": {"message": "Unrecognized request argument supplied: max_completion_tokens"}}
    asked = Answered(OpenAIProvider, [refusal(400, body), refusal(200, HELLO)])
    asked.provider._base_url = None  # pyright: ignore[reportPrivateUsage]
    asked.provider.generate(request(max_output_tokens=50))
    assert ["max_completion_tokens" in sent for sent in asked.bodies] == [True, False]
    assert asked.bodies[1]["max_tokens"] == 50


def test_another_model_of_the_service_keeps_the_name() -> None:
    asked = Answered(OpenAIProvider, [refusal(400, USE_THE_OTHER), refusal(200, HELLO)])
    asked.provider.generate(request(max_output_tokens=50))
    asked.provider.generate(request(model="other", max_output_tokens=50))
    assert asked.bodies[-1]["max_tokens"] == 50


def test_a_summary_is_made_by_a_model_that_was_learned_of_in_its_own_call() -> None:
    asked = Answered(OpenAIProvider, [refusal(400, USE_THE_OTHER), refusal(200, HELLO)])
    reply = AuxiliaryModel(asked.provider, "m").ask("compaction", "Sum up.", "Much.", timeout_s=9, max_output_tokens=7)
    assert (reply.text, len(asked.bodies)) == ("Hello.", 2)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("temperature", {"temperature": 0.5}),
        ("top_p", {"top_p": 0.5}),
        ("stop", {"stop": ("END",)}),
        ("seed", {"seed": 7}),
        ("reasoning_effort", {"reasoning_effort": "low"}),
        ("parallel_tool_calls", {"parallel_tool_calls": False}),
        ("tool_choice", {"tool_choice": "required"}),
        ("response_format", {}),
        ("stream_options", {}),
    ],
)
def test_each_parameter_is_left_out_by_its_name(name: str, options: dict[str, Any], streamed: bool) -> None:
    if name == "stream_options" and not streamed:
        return
    answer = stream(*hello_chunks()) if streamed else refusal(200, HELLO)
    body = {"error": {"message": "Not supported by this model.", "param": name, "code": "unsupported_parameter"}}
    asked = Answered(OpenAIProvider, [refusal(400, body), answer])
    schema = {"type": "object", "properties": {}} if name == "response_format" else None
    wanted = request(options=ModelOptions(**options), tools=(WEATHER,), output_schema=schema)
    ask: Any = asked.provider.generate_stream if streamed else asked.provider.generate
    for _ in range(2):
        list(ask(wanted))
    assert [name in sent for sent in asked.bodies] == [True, False, False]


def test_responses_leave_out_the_limit_of_a_reply() -> None:
    body = {"detail": "Unsupported parameter: max_output_tokens"}
    asked = Answered(OpenAIResponsesProvider, [refusal(400, body), refusal(500, "")])
    with pytest.raises(ProviderError):
        asked.provider.generate(request(max_output_tokens=50))
    assert ["max_output_tokens" in sent for sent in asked.bodies][:2] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
        "`max_tokens` must be less than or equal to 8000, which this model supports",
    ],
)
def test_a_limit_that_is_too_large_is_not_left_out(text: str) -> None:
    asked = Answered(OpenAIProvider, [refusal(400, {"error": {"message": text, "param": "max_tokens"}})])
    with pytest.raises(ProviderError) as caught:
        asked.provider.generate(request(max_output_tokens=50))
    assert (caught.value.kind, len(asked.bodies)) == ("refused", 1)


def test_what_was_not_sent_is_not_sent_again_without_it() -> None:
    body = {"error": {"message": "Unsupported parameter: temperature", "param": "temperature"}}
    asked = Answered(OpenAIProvider, [refusal(400, body)])
    with pytest.raises(ProviderError):
        asked.provider.generate(request())
    assert len(asked.bodies) == 1


def test_the_name_that_comes_first_is_what_it_is_about() -> None:
    body = {"error": {"message": "'b_two' is not supported; use 'a_one' or 'c_three'"}}
    assert refused_parameter(400, body, ("a_one", "b_two", "c_three")) == "b_two"
    body["error"]["param"] = "c_three"
    assert refused_parameter(400, body, ("a_one", "b_two", "c_three")) == "c_three"
