"""What a model does not take is learned from the name in its refusal, once a process, for every purpose."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.models.failures import refused_parameter
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.contracts.model_options import ModelOptions
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import WEATHER, request
from tests.unit.engine.models.vendor_wires import HELLO, Answered, hello_chunks, refusal, stream

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
