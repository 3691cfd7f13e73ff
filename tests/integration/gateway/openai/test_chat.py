"""Chat completions, asked for by OpenAI's own client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from brainq.contracts.turn import TurnResult
from tests.integration.gateway.openai.conftest import PLACE, STORY, THOUGHT
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("pools")
GONE = "the client gave no result in time"
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": PLACE}}


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


@pytest.mark.full
def test_a_question_is_answered(client: OpenAI, pump: Pump) -> None:
    done = client.chat.completions.create(model="shop", messages=said("hello"), temperature=0.2)
    (choice,) = done.choices
    assert (choice.message.content, choice.finish_reason) == ("You said hello.", "stop")
    turn_id = done.id.removeprefix("chatcmpl-")
    result = pump.client.handle(turn_id).result(timeout_s=30)
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (result.input_tokens, result.output_tokens)


@pytest.mark.full
def test_how_the_model_is_asked_reaches_the_turn(client: OpenAI, pump: Pump) -> None:
    done = client.chat.completions.create(
        model="shop",
        messages=said("hello"),
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        temperature=0,
        stop=["END"],
        reasoning_effort="low",
    )
    again = client.responses.create(model="shop", input="hello", top_p=0.5, reasoning={"effort": "high"})
    requests = [
        pump.wiring.store.turns.request(turn_id)
        for turn_id in (done.id.removeprefix("chatcmpl-"), again.id.removeprefix("resp_"))
    ]
    assert [request.options.explicit() for request in requests if request is not None] == [
        {"temperature": 0.0, "stop": ("END",), "tool_choice": "weather", "reasoning_effort": "low"},
        {"top_p": 0.5, "reasoning_effort": "high"},
    ]


@pytest.mark.full
def test_the_brains_own_tools_run_in_the_pools_and_are_not_shown(client: OpenAI) -> None:
    done = client.chat.completions.create(model="shop", messages=said("look"))
    assert done.choices[0].message.content == "Seen pears."
    assert done.choices[0].message.tool_calls is None


def test_a_stream_is_the_whole_text(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="shop", messages=said("story"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == STORY
    finish = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert finish[-1] == "stop"
    assert set(finish[:-1]) == {None}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


def test_what_the_model_thought_comes_beside_the_text(client: OpenAI) -> None:
    chunks: Any = client.chat.completions.create(model="shop", messages=said("think"), stream=True)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    thought = [getattr(delta, "reasoning_content", None) for delta in deltas]
    assert "".join(filter(None, thought)) == THOUGHT
    assert "".join(delta.content or "" for delta in deltas) == STORY
    done: Any = client.chat.completions.create(model="shop", messages=said("think"))
    message = done.choices[0].message
    assert (message.reasoning_content, message.content) == (THOUGHT, STORY)
    # A client sends it back, and it is no part of what was said.
    again = client.chat.completions.create(
        model="shop", messages=[*said("think"), message.to_dict(), *said("everything")]
    )
    assert "Hm" not in str(again.choices[0].message.content)


@pytest.mark.parametrize("streams", [pytest.param(False, marks=pytest.mark.full), True])
def test_the_client_runs_its_own_tools_over_two_requests(client: OpenAI, pump: Pump, streams: bool) -> None:
    messages = said("weather")

    def ask() -> Any:
        if not streams:
            return client.chat.completions.create(model="shop", messages=messages, tools=[WEATHER])
        with client.chat.completions.stream(model="shop", messages=messages, tools=[WEATHER]) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion()

    first = ask()
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me see. "
    made = choice.message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in made] == [
        ("weather", '{"place":"Oslo"}'),
        ("weather", '{"place":"Bern"}'),
    ]
    messages.append({"role": "assistant", "content": "Let me see. ", "tool_calls": [call.to_dict() for call in made]})
    for call, weather in zip(made, ("rain ☔", "snow"), strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": weather})
    second, again = ask(), ask()
    for done in (second, again):
        assert done.choices[0].finish_reason == "stop"
        assert done.choices[0].message.content == "Seen rain ☔, snow."
    assert first.id == second.id == again.id
    turn_id = first.id.removeprefix("chatcmpl-")
    result = pump.client.handle(turn_id).result(timeout_s=30)
    assert result.tool_calls == 2
    if not streams:
        assert first.usage.prompt_tokens + second.usage.prompt_tokens == result.input_tokens
    other = client.chat.completions.create(model="shop", messages=[*messages, *said("everything")])
    shown = other.choices[0].message.content
    assert shown == ("user: weather | assistant: Let me see.  | tool: rain ☔ | tool: snow | user: everything")


@pytest.mark.full
def test_the_brains_write_stands_between_the_clients_calls(client: OpenAI) -> None:
    messages = said("mixed")
    places: list[str] = []
    while True:
        done = client.chat.completions.create(model="shop", messages=messages, tools=[WEATHER])
        calls: Any = done.choices[0].message.tool_calls
        if not calls:
            break
        messages.append({"role": "assistant", "tool_calls": [call.to_dict() for call in calls]})
        for call in calls:
            places.append(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "fine"})
    assert places == ['{"place":"Oslo"}', '{"place":"Bern"}']
    assert done.choices[0].message.content == "Seen pears, fine, saved, fine."


def test_what_was_said_elsewhere_is_brought_along(client: OpenAI) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Boats?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call, call | {"id": "call_8"}]},
        {"role": "tool", "tool_call_id": "call_8", "content": "two"},
        {"role": "tool", "tool_call_id": "call_7", "content": "one"},
        {"role": "assistant", "content": "Some."},
        *said("everything"),
    ]
    done = client.chat.completions.create(model="shop", messages=messages)
    shown = done.choices[0].message.content or ""
    assert "user: Boats? | assistant:  | tool: one | tool: two | assistant: Some." in shown
    assert "Be brief." in shown


def test_a_session_that_is_named_takes_what_is_new(client: OpenAI, pump: Pump) -> None:
    messages = said("hello")
    first = client.chat.completions.create(
        model="shop", messages=messages, extra_headers={"X-Session-ID": "acme:chat-1"}
    )
    messages += [{"role": "assistant", "content": first.choices[0].message.content}, *said("everything")]
    second = client.chat.completions.create(
        model="shop", messages=messages, metadata={"session_id": "acme:chat-1", "page": "7"}
    )
    assert second.choices[0].message.content == "user: hello | assistant: You said hello. | user: everything"
    turns = pump.client.session("acme:chat-1").history()
    assert [turn.user_message for turn in turns] == ["hello", "everything"]
    request = pump.wiring.store.turns.request(turns[1].turn_id)
    assert request is not None
    assert (request.history, request.metadata) == ((), {"page": "7"})


def test_calls_that_are_never_answered_end_their_turn(
    gateways: Callable[..., GatewayThread], clients: Callable[..., OpenAI], pump: Pump
) -> None:
    client = clients(base_url=f"{gateways(client_tools_s=0.5).url}/v1")
    # A client that wants the arguments alone: it reads them, and is gone.
    asked = client.chat.completions.create(model="shop", messages=said("ghost"), tools=[WEATHER])
    assert asked.choices[0].finish_reason == "tool_calls"
    handle = pump.client.handle(asked.id.removeprefix("chatcmpl-"))

    def result() -> TurnResult | None:
        pump.sweep()
        return pump.wiring.store.turns.result(handle.turn_id)

    ended = wait_until(result, "the turn is over")
    assert ended is not None
    ended = wait_until(result, "the turn is over")
    assert ended is not None
    assert (ended.ending, ended.steps) == ("cancelled", 1), "the model was asked for nobody"
    assert "save" not in [call.tool for call in handle.calls()]
    calls: Any = asked.choices[0].message.tool_calls
    late: Any = {"role": "tool", "tool_call_id": calls[0].id, "content": "rain"}
    messages: Any = [*said("ghost"), asked.choices[0].message, late]
    with pytest.raises(openai.APIStatusError) as refusal:
        client.chat.completions.create(model="shop", messages=messages)
    assert (refusal.value.code, refusal.value.message.partition(" - ")[2]) == ("turn_cancelled", GONE)


@pytest.mark.full
def test_who_asks_anew_leaves_the_calls_of_the_turn_before(client: OpenAI) -> None:
    named = {"X-Session-ID": "acme:chat-2"}
    first = client.chat.completions.create(model="shop", messages=said("weather"), tools=[WEATHER], extra_headers=named)
    assert first.choices[0].finish_reason == "tool_calls"
    second = client.chat.completions.create(model="shop", messages=said("everything"), extra_headers=named)
    assert "Whether it took effect is not known" in (second.choices[0].message.content or "")


def test_who_asks_anew_before_the_calls_are_there_leaves_them_too(
    client: OpenAI, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.gateway.wires.chat.requests.ABANDON_AFTER_S", 0.0)
    tool: Any = {"name": "weather", "parameters": {"type": "object"}}
    before = pump.client.submit("acme:chat-3", "weather", client_tools=[tool])
    named = {"X-Session-ID": "acme:chat-3"}
    second = client.chat.completions.create(model="shop", messages=said("everything"), extra_headers=named)
    assert "Whether it took effect is not known" in (second.choices[0].message.content or "")
    assert before.result(timeout_s=30).ending == "cancelled"


@pytest.mark.full
def test_a_cut_answer_says_so(client: OpenAI) -> None:
    done = client.chat.completions.create(model="shop", messages=said("long"), max_tokens=5)
    assert done.choices[0].finish_reason == "length"


class Person(BaseModel):
    name: str


@pytest.mark.parametrize(("asked", "name"), [("form", "Bob"), ("form after a look", "Ann")])
def test_an_answer_that_fits_a_schema_is_all_that_is_told(client: OpenAI, asked: str, name: str) -> None:
    done = client.chat.completions.parse(model="shop", messages=said(asked), response_format=Person)
    assert done.choices[0].message.parsed == Person(name=name)
    with client.chat.completions.stream(model="shop", messages=said(asked), response_format=Person) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.parsed == Person(name=name)
    response = client.responses.parse(model="shop", input=asked, text_format=Person)
    assert response.output_parsed == Person(name=name)
    assert client.responses.retrieve(response.id).output_text == response.output_text
