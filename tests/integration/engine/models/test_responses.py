"""OpenAI's Responses API through the SDK `openai`, against a service that holds its client to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from brainq import Brain, Effect
from brainq.adapters.models.openai.provider import OpenAIResponsesProvider
from brainq.contracts.message import Message
from brainq.contracts.model import FinishKind, ModelReply, ModelRequest
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.engine.models.providers import resolve_model
from brainq.errors import ProviderError
from tests.integration.engine.models.asking import ask, streamed_or_not
from tests.integration.engine.models.responses_service import ResponsesService
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.pump import Pump
from tests.unit.engine.models.requests import WEATHER, request, result, system, user
from tests.unit.engine.models.test_responses_wire import CALL, response, said, streamed

QUICK = RetryPolicy(first_s=0.05, max_attempts=4)
BERN = CALL | {"call_id": "call_b", "arguments": '{"city": "Bern"}'}


@pytest.fixture
def provider(wire: WireServer) -> Iterator[OpenAIResponsesProvider]:
    made = OpenAIResponsesProvider(base_url=f"{wire.url}/v1", api_key="k", retry=QUICK)
    made.warm_up()
    yield made
    made.close()


def kept(reply: ModelReply, step: int) -> list[Message]:
    """The reply as a turn's history has it, with the results of its calls."""
    calls = tuple(call.model_copy(update={"id": f"c{step}-{n}"}) for n, call in enumerate(reply.calls))
    message = Message(role="assistant", content=reply.text, calls=calls, reasoning=reply.reasoning)
    return [message, *(result(call.id, "rain") for call in calls)]


def asked(messages: list[Message], model: str = "gpt-5") -> ModelRequest:
    return request(*messages, model=model, tools=(WEATHER,))


@streamed_or_not
def test_reasoning_goes_back_with_the_results_of_the_calls(
    wire: WireServer, provider: OpenAIResponsesProvider, streamed: bool
) -> None:
    aside = said("Let me see.") | {"phase": "commentary"}
    service = ResponsesService([aside, CALL, BERN], [CALL, aside], [said("Rain in both.")])
    wire.otherwise = service
    messages = [system("Be kind."), user("The weather?")]
    for step in (1, 2, 3):
        reply = ask(provider, asked(messages), streamed=streamed)
        messages += kept(reply, step)
    assert reply.text == "Rain in both."
    assert [thought.text for thought in reply.reasoning] == ["Thought 6.", ""]
    assert service.sent_back == ["rs_1", "rs_2", "rs_3", "rs_4", "rs_5"]
    assert service.refused == []
    assert reply.usage.output_tokens == 5


def test_another_model_is_not_sent_what_the_first_one_thought(
    wire: WireServer, provider: OpenAIResponsesProvider
) -> None:
    service = ResponsesService([CALL], [said("Rain.")], [said("Still rain.")])
    wire.otherwise = service
    messages = [user("The weather?")]
    messages += kept(provider.generate(asked(messages)), 1)
    provider.generate(asked(messages, "gpt-5-mini"))
    assert service.sent_back == []
    provider.generate(asked(messages))
    assert service.sent_back == ["rs_1"]


def test_reasoning_that_cannot_be_decrypted_is_left_out_of_that_request(
    wire: WireServer, provider: OpenAIResponsesProvider
) -> None:
    def refuse(exchange: Exchange) -> None:
        error = {"message": "The encrypted content could not be verified.", "code": "invalid_encrypted_content"}
        exchange.send_json(400, {"error": error})

    service = ResponsesService([CALL], [said("Rain.")], [said("Still rain.")])
    wire.answers = [service, refuse, service, service]
    messages = [user("The weather?")]
    messages += kept(provider.generate(asked(messages)), 1)
    assert provider.generate(asked(messages)).text == "Rain."
    assert service.sent_back == []
    assert provider.generate(asked(messages)).text == "Still rain."
    assert service.sent_back == ["rs_1"]


def test_a_model_that_does_not_reason_is_asked_without_encryption_from_then_on(
    wire: WireServer, provider: OpenAIResponsesProvider
) -> None:
    def refuse(exchange: Exchange) -> None:
        error = {"message": "Encrypted content is not supported with this model.", "param": "include"}
        exchange.send_json(400, {"error": error})

    def answer(exchange: Exchange) -> None:
        exchange.send_json(200, response(said("Hi")))

    wire.answers = [refuse, answer, answer, answer]
    for model in ("gpt-4.1", "gpt-4.1", "gpt-5"):
        assert provider.generate(request(model=model)).text == "Hi"
    assert ["include" in body for body in wire.bodies] == [True, False, False, True]


@streamed_or_not
def test_a_service_in_trouble_is_asked_again(
    wire: WireServer, provider: OpenAIResponsesProvider, streamed: bool
) -> None:
    def limited(exchange: Exchange) -> None:
        exchange.send_json(429, {"error": {"message": "slow down"}}, retry_after="0.01")

    def failed(exchange: Exchange) -> None:
        answer = response(status="failed", error={"code": "server_error", "message": "sorry"})
        exchange.send_json(200, answer)

    wire.answers = [limited, failed, ResponsesService([said("At last.")])]
    assert ask(provider, request(), streamed=streamed).text == "At last."
    assert len(wire.bodies) == 3


def test_a_stream_that_is_cut_is_no_reply(wire: WireServer, provider: OpenAIResponsesProvider) -> None:
    events = streamed(response(CALL))

    def cut(exchange: Exchange) -> None:
        exchange.begin()
        for event in events[:-1]:
            exchange.event(event)
        exchange.finish()

    wire.answers = [cut]
    with pytest.raises(ProviderError) as caught:
        list(provider.generate_stream(request()))
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)


def test_a_reply_cut_at_its_limit_is_not_whole(wire: WireServer, provider: OpenAIResponsesProvider) -> None:
    details = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    wire.answers = [lambda exchange: exchange.send_json(200, response(CALL, **details))]
    assert provider.generate(request()).finish is FinishKind.LENGTH


def test_its_name_is_openai_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    found, model = resolve_model("openai-responses:gpt-5")
    assert isinstance(found, OpenAIResponsesProvider)
    assert (found.name, model) == ("openai-responses", "gpt-5")
    found.check()


def test_a_turn_keeps_its_models_reasoning_and_sends_it_back(
    wire: WireServer, provider: OpenAIResponsesProvider, pumps: Callable[..., Pump]
) -> None:
    service = ResponsesService([CALL, BERN], [CALL], [said("Rain.")], [said("You asked for Oslo.")])
    wire.otherwise = service
    brain = Brain("weather", provider)

    @brain.tool(effect=Effect.READ_ONLY)
    def weather(city: str) -> str:  # pyright: ignore[reportUnusedFunction]
        "The weather."
        return f"rain in {city}"

    pump = pumps(brain)
    first = pump.finish(pump.submit("s1", "The weather?"))
    assert (first.text, first.steps) == ("Rain.", 3)
    assert service.sent_back == ["rs_1", "rs_2", "rs_3"]
    second = pump.finish(pump.submit("s1", "What did I ask for?"))
    assert second.text == "You asked for Oslo."
    assert service.sent_back[:3] == ["rs_1", "rs_2", "rs_3"]
    assert service.refused == []
