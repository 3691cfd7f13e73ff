"""Models by way of pydantic-ai: its own test models, and Gemini's wire through google-genai."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as MadeUpModel
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider as OpenAIService

from brainq.contracts.message import Attachment, Message
from brainq.contracts.model import FinishKind, ModelReply, TokenUsage
from brainq.contracts.model_options import ModelOptions
from brainq.contrib.pydantic_ai.provider import PydanticAIProvider
from brainq.contrib.pydantic_ai.services import SERVICES
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.providers import resolve_model
from brainq.errors import ProviderError, SetupError
from tests.integration.engine.models.wire_server import Answer, Exchange, WireServer
from tests.unit.engine.models.requests import WEATHER, assistant, call, request, result, system, user

QUICK = RetryPolicy(first_s=0.01, max_attempts=4)
THOUGHT: dict[str, Any] = {"text": "Oslo, then.", "thought": True}
CALL: dict[str, Any] = {
    "functionCall": {"name": "weather", "args": {"city": "Oslo"}},
    "thoughtSignature": base64.b64encode(b"signed").decode(),
}


@pytest.fixture
def gemini(wire: WireServer) -> Iterator[PydanticAIProvider]:
    service = GoogleProvider(api_key="k", base_url=wire.url)
    made = PydanticAIProvider(model=GoogleModel("gemini-3-pro-preview", provider=service), retry=QUICK)
    yield made
    made.close()


def candidate(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    said = {"content": {"role": "model", "parts": list(parts)}}
    return {
        "candidates": [said | ({"finishReason": finish} if finish else {})],
        "modelVersion": "gemini-3-pro",
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 2,
            "totalTokenCount": 15,
        },
    }


class Answers:
    """Sends the parts whole, or each as a piece of a stream, as the client asks; the last piece says why it ends."""

    def __init__(self, *parts: dict[str, Any], finish: str | None = "STOP") -> None:
        self.parts = parts
        self.finish = finish

    def __call__(self, exchange: Exchange) -> None:
        if ":streamGenerateContent" not in exchange.path:
            exchange.send_json(200, candidate(*self.parts, finish=self.finish))
            return
        exchange.begin()
        for number, part in enumerate(self.parts, 1):
            exchange.event(candidate(part, finish=self.finish if number == len(self.parts) else None))
        exchange.finish()


def ask(provider: PydanticAIProvider, *messages: Message, streamed: bool, **changes: Any) -> ModelReply:
    asked = request(*messages, tools=(WEATHER,), **changes)
    if not streamed:
        return provider.generate(asked)
    *said, last = provider.generate_stream(asked)
    assert last.reply is not None
    assert "".join(chunk.text for chunk in said) == last.reply.text
    return last.reply


both = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])


@both
def test_what_gemini_has_signed_goes_back_to_it(wire: WireServer, gemini: PydanticAIProvider, streamed: bool) -> None:
    wire.answers = [Answers(THOUGHT, CALL), Answers({"text": "Rain "}, {"text": "😀."}), Answers({"text": "?"})]
    messages = [system("Be kind."), user("The weather?")]
    first = ask(gemini, *messages, streamed=streamed)
    assert (first.finish_reason, first.calls[0].arguments) == ("tool_calls", {"city": "Oslo"})
    assert first.usage == TokenUsage(input_tokens=10, output_tokens=5, cache_read_tokens=4)
    assert [thought.text for thought in first.reasoning] == ["Oslo, then.", ""]
    calls = (first.calls[0].model_copy(update={"id": "c1-0"}),)
    messages += [Message(role="assistant", calls=calls, reasoning=first.reasoning), result("c1-0", "rain")]
    assert ask(gemini, *messages, streamed=streamed).text == "Rain 😀."
    sent = wire.bodies[1]
    assert sent["systemInstruction"]["parts"] == [{"text": "Be kind."}]
    asked, thinking, answered = sent["contents"]
    assert asked["parts"] == [{"text": "The weather?"}]
    assert thinking["parts"][0] == THOUGHT
    assert thinking["parts"][1]["thoughtSignature"] == CALL["thoughtSignature"]
    assert answered["parts"][0]["functionResponse"]["name"] == "weather"
    # Another model is sent no signature of the first one's.
    ask(gemini, *messages, streamed=streamed, model="another")
    assert CALL["thoughtSignature"] not in str(wire.bodies[2])


@both
@pytest.mark.parametrize(
    ("said", "finish"), [("STOP", FinishKind.WHOLE), ("MAX_TOKENS", FinishKind.LENGTH), ("SAFETY", FinishKind.FILTERED)]
)
def test_whether_a_reply_is_whole(
    wire: WireServer, gemini: PydanticAIProvider, streamed: bool, said: str, finish: FinishKind
) -> None:
    wire.answers = [Answers({"text": "Hi"}, finish=said)]
    assert ask(gemini, user("hi"), streamed=streamed).finish is finish


def test_a_stream_that_ends_without_a_reason_was_cut(wire: WireServer, gemini: PydanticAIProvider) -> None:
    wire.answers = [Answers({"text": "Half an ans"}, CALL, finish=None)]
    with pytest.raises(ProviderError) as caught:
        ask(gemini, user("hi"), streamed=True)
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)


@both
def test_a_service_in_trouble_is_asked_again(wire: WireServer, gemini: PydanticAIProvider, streamed: bool) -> None:
    def trouble(status: int) -> Answer:
        error = {"code": status, "message": "busy", "status": "UNAVAILABLE"}

        def answer(exchange: Exchange) -> None:
            exchange.send_json(status, {"error": error})

        return answer

    wire.answers = [trouble(503), trouble(429), trouble(500), Answers({"text": "Hi"})]
    assert ask(gemini, user("hi"), streamed=streamed).text == "Hi"
    assert len(wire.bodies) == 4


@pytest.mark.parametrize(
    ("status", "word", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "no such thing", "refused"),
        (403, "PERMISSION_DENIED", "not yours", "denied"),
        (404, "NOT_FOUND", "no such model", "denied"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "too_long",
        ),
    ],
)
def test_what_is_refused_is_told_at_once(
    wire: WireServer, gemini: PydanticAIProvider, status: int, word: str, message: str, kind: str
) -> None:
    error = {"code": status, "message": message, "status": word}
    wire.answers = [lambda exchange: exchange.send_json(status, {"error": error})]
    with pytest.raises(ProviderError) as caught:
        gemini.generate(request())
    assert (caught.value.kind, caught.value.retryable) == (kind, False)


def test_a_silent_stream_stalls_and_its_connection_is_given_up(wire: WireServer, gemini: PydanticAIProvider) -> None:
    gone = threading.Event()

    def silent(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(candidate({"text": "He"}, finish=None))
        try:
            while exchange.hold(1):
                exchange.event(candidate({"text": "llo"}, finish=None))
        except OSError:
            gone.set()
            exchange.close_connection = True

    wire.answers = [silent]
    with pytest.raises(ProviderError) as caught:
        list(gemini.generate_stream(request(timeout_s=60, first_token_s=20, idle_s=0.2)))
    assert (caught.value.kind, caught.value.retryable) == ("stalled", True)
    assert gone.wait(60)


@both
def test_a_call_ends_at_its_deadline(wire: WireServer, gemini: PydanticAIProvider, streamed: bool) -> None:
    wire.answers = [lambda exchange: (exchange.hold(30), None)[1]]
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        ask(gemini, user("hi"), streamed=streamed, timeout_s=0.3)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 20


def test_images_go_along_and_options_are_settings(wire: WireServer, gemini: PydanticAIProvider) -> None:
    data = b"\x89PNG bytes"
    image = Attachment(sha256=hashlib.sha256(data).hexdigest(), media_type="image/png", size=len(data), name="plan.png")
    missing = image.model_copy(update={"sha256": "0" * 64})
    options = ModelOptions(
        temperature=0.5, top_p=0.9, seed=7, stop=("END",), tool_choice="weather", reasoning_effort="low"
    )
    shown = user("Look").model_copy(update={"attachments": (image, missing)})
    returned = result("c1-0", "a plan").model_copy(update={"attachments": (image,)})
    wire.answers = [Answers({"text": "Hi"})]
    gemini.generate(
        request(
            *(shown, assistant("", call("c1-0", {})), returned),
            tools=(WEATHER,),
            options=options,
            max_output_tokens=99,
            blobs={image.sha256: data},
        )
    )
    (sent,) = wire.bodies
    first, *_, last = sent["contents"]
    assert first["parts"][1]["inlineData"]["data"] == base64.b64encode(data).decode()
    assert "no longer kept" in first["parts"][2]["text"]
    assert any("inlineData" in part for part in last["parts"])
    config = sent["generationConfig"]
    assert (config["temperature"], config["topP"], config["seed"], config["maxOutputTokens"]) == (0.5, 0.9, 7, 99)
    assert (config["stopSequences"], config["thinkingConfig"]["thinking_level"].lower()) == (["END"], "low")
    assert sent["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"


def test_an_answer_is_held_to_its_schema(wire: WireServer, gemini: PydanticAIProvider) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    wire.answers = [Answers({"text": '{"city": "Oslo"}'})]
    assert gemini.generate(request(output_schema=schema)).text == '{"city": "Oslo"}'
    config = wire.bodies[0]["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert "city" in str(config)


def test_threads_share_a_model(wire: WireServer, gemini: PydanticAIProvider) -> None:
    wire.answers = [Answers({"text": "Hi"})] * 12
    texts: list[str] = []
    ask_twice = [
        threading.Thread(target=lambda: texts.extend(gemini.generate(request()).text for _ in "ab")) for _ in range(6)
    ]
    for thread in ask_twice:
        thread.start()
    for thread in ask_twice:
        thread.join()
    assert texts == ["Hi"] * 12


# -- models in this process ---------------------------------------------------------------------------------------


def test_a_made_up_model_answers() -> None:
    provider = PydanticAIProvider(model=MadeUpModel(custom_output_text="Hello 😀"))
    *shown, last = provider.generate_stream(request())
    assert "".join(chunk.text for chunk in shown) == "Hello 😀"
    assert last.reply is not None
    assert last.reply.finish is FinishKind.WHOLE
    assert provider.name == "test"
    assert resolve_model(provider) == (provider, "test")


def test_a_function_gets_the_conversation_and_its_surrogates_are_joined() -> None:
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        assert [tool.name for tool in info.function_tools] == ["weather"]
        return ModelResponse(parts=[TextPart("So \ud83d"), ToolCallPart("weather", '{"city": ', "x1")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        yield "So \ud83d"
        yield "\ude00"
        yield {0: DeltaToolCall("weather", '{"city": "Oslo"}', tool_call_id="x1")}

    provider = PydanticAIProvider(model=FunctionModel(answer, stream_function=stream))
    late = [system("Be kind."), user("hi"), system("late")]
    reply = provider.generate(request(*late, tools=(WEATHER,)))
    assert (reply.text, reply.calls[0].arguments) == ("So \ufffd", '{"city": ')
    (sent,) = seen[0]
    assert [type(part).__name__ for part in sent.parts] == ["SystemPromptPart", "UserPromptPart", "UserPromptPart"]
    assert isinstance(sent.parts[2], UserPromptPart)
    *_, last = provider.generate_stream(request(tools=(WEATHER,)))
    assert last.reply is not None
    assert (last.reply.text, last.reply.calls[0].arguments) == ("So 😀", {"city": "Oslo"})


def test_a_function_that_raises_is_an_error_of_its_provider() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ConnectionResetError("gone")

    provider = PydanticAIProvider(model=FunctionModel(answer), retry=RetryPolicy(max_attempts=1))
    spare = PydanticAIProvider(model=MadeUpModel(custom_output_text="Hi"))
    with pytest.raises(ProviderError) as caught:
        provider.generate(request())
    assert caught.value.kind == "connection"
    streams = Fallback([spare, spare])
    assert streams.generate(request()).text == "Hi"


def test_a_function_that_cannot_stream_answers_as_a_whole() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("All at once.")])

    first, last = PydanticAIProvider(model=FunctionModel(answer)).generate_stream(request())
    assert (first.text, last.text) == ("All at once.", "")
    assert last.reply is not None
    assert last.reply.text == "All at once."


@pytest.mark.parametrize("takes_schemas", [True, False])
def test_a_model_that_takes_no_schema_reads_it_in_its_instructions(takes_schemas: bool) -> None:
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.instructions or "")
        return ModelResponse(parts=[TextPart('{"city": "Oslo"}')])

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    asked = request().model_copy(update={"output_schema": schema})
    model = FunctionModel(answer, profile={"supports_json_schema_output": takes_schemas})
    assert PydanticAIProvider(model=model).generate(asked).text == '{"city": "Oslo"}'
    assert ('"city"' in seen[0]) is not takes_schemas
    made_up = PydanticAIProvider(model=MadeUpModel(custom_output_text='{"city": "Bergen"}'))
    assert made_up.generate(asked).text == '{"city": "Bergen"}'


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_pydantic_ai_knows_our_names(name: str) -> None:
    try:
        infer_provider_class(name)
    except ImportError as missing:  # its SDK is not installed here
        said = str(missing)
    else:
        return
    assert f"pydantic-ai-slim[{SERVICES[name].extra}]" in said


def test_names_resolve_and_say_what_they_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    provider, model = resolve_model("google:gemini-2.5-pro")
    assert isinstance(provider, PydanticAIProvider)
    assert (provider.name, model) == ("google", "gemini-2.5-pro")
    with pytest.raises(SetupError, match="set GOOGLE_API_KEY or GEMINI_API_KEY"):
        provider.check()
    with pytest.raises(SetupError, match="GOOGLE_API_KEY"):
        provider.generate(request(model=model))
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    again, _ = resolve_model("google:gemini-2.5-pro")
    assert again is not provider
    assert isinstance(again, PydanticAIProvider)
    again.check()
    again.warm_up()
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    mistral, _ = resolve_model("mistral:mistral-large-latest")
    assert isinstance(mistral, PydanticAIProvider)
    with pytest.raises(SetupError, match=r"pip install 'brainq\[pydantic-ai\]' 'pydantic-ai-slim\[mistral\]'"):
        mistral.check()
    other, model = resolve_model("pydantic-ai:nobody:x")
    assert model == "nobody:x"
    with pytest.raises(SetupError, match="nobody:x"):
        other.generate(request(model=model))


def test_the_extra_is_named_where_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.contrib.pydantic_ai.services.PYDANTIC_AI_PACKAGE", "no_such_package")
    with pytest.raises(
        SetupError, match=r"needs the package 'pydantic-ai-slim'; install it with: pip install 'brainq\["
    ):
        PydanticAIProvider("google").check()


def test_prices() -> None:
    million = TokenUsage(input_tokens=100_000, output_tokens=100_000)
    gemini = cost_usd("google", "gemini-2.5-flash", million)
    assert gemini is not None
    assert cost_usd("google-cloud", "gemini-2.5-flash", million) == gemini
    assert cost_usd("pydantic-ai", "google:gemini-2.5-flash", million) == gemini
    assert cost_usd("bedrock", "anthropic.claude-3-5-sonnet-20240620-v1:0", million) is not None


@pytest.mark.filterwarnings("ignore:Failed to extract usage", "ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("written", "tokens"), [(3.2, 4), (-5, 3), ("x", 3)])
def test_no_reply_is_refused_over_its_token_counts(wire: WireServer, written: Any, tokens: int) -> None:
    def answer(exchange: Exchange) -> None:
        head = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        exchange.begin()
        exchange.event({**head, "choices": [{"index": 0, "delta": {"content": "hello there"}}]})
        exchange.event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        exchange.event({**head, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": written}})
        exchange.event("[DONE]")
        exchange.finish()

    service = OpenAIService(base_url=f"{wire.url}/v1", api_key="k")
    provider = PydanticAIProvider(model=OpenAIChatModel("gpt-4.1", provider=service), retry=QUICK)
    try:
        wire.answers = [answer, answer]
        whole = provider.generate(request())
        *_, last = provider.generate_stream(request())
    finally:
        provider.close()
    for reply in (whole, last.reply):
        assert reply is not None
        assert (reply.text, reply.usage.output_tokens, reply.usage.estimated) == ("hello there", tokens, True)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([(0, "ann", "a"), (1, "bob", "b")], ["ann", "bob"]),
        ([(0, "ann", "a"), (1, "ann", "a")], ["ann"]),
        ([(0, "ann", "a"), (0, "bob", "b")], "a call that came before is not in the final message"),
        ([(0, "ann", "a"), (1, "bob", "a")], "two calls have the id 'a', with different content"),
    ],
    ids=["two", "one said twice", "an index used twice", "an id used twice"],
)
def test_calls_of_a_stream_are_those_of_its_final_message(
    calls: list[tuple[int, str, str]], outcome: list[str] | str
) -> None:
    async def stream(*_: object) -> AsyncIterator[dict[int, DeltaToolCall]]:
        for index, to, call_id in calls:
            yield {index: DeltaToolCall("pay", json.dumps({"to": to}), tool_call_id=call_id)}

    provider = PydanticAIProvider(model=FunctionModel(stream_function=stream), retry=RetryPolicy(max_attempts=1))
    try:
        if isinstance(outcome, str):
            with pytest.raises(ProviderError, match=outcome):
                list(provider.generate_stream(request()))
            return
        *_, last = provider.generate_stream(request())
    finally:
        provider.close()
    assert last.reply is not None
    assert [call.arguments for call in last.reply.calls] == [{"to": to} for to in outcome]
