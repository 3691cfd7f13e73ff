"""Responses, asked for by OpenAI's own client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import OpenAI

from brainq.adapters.models.openai.provider import OpenAIResponsesProvider
from brainq.client.handle import TurnHandle
from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from tests.integration.engine.models.asking import ask
from tests.integration.gateway.openai.conftest import PLACE, STORY, THOUGHT
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.wait import wait_until
from tests.unit.engine.models.requests import request, result, system, user

pytestmark = pytest.mark.usefixtures("pools")
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}


@pytest.mark.full
def test_a_response_is_kept_under_its_id(client: OpenAI, pump: Pump) -> None:
    done = client.responses.create(model="shop", input="hello", instructions="Be brief.")
    assert (done.status, done.output_text) == ("completed", "You said hello.")
    assert done.usage is not None
    again = client.responses.retrieve(done.id)
    assert again == done
    pump.drain()
    forget(pump)
    kept = client.responses.retrieve(done.id)
    assert (kept.status, kept.output_text, kept.usage) == ("completed", done.output_text, done.usage)


@pytest.mark.full
def test_sessions_are_named_by_a_response_before_or_as_a_conversation(client: OpenAI) -> None:
    first = client.responses.create(model="shop", input="hello")
    second = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    assert second.output_text == "user: hello | assistant: You said hello. | user: everything"
    assert first.conversation is not None
    third = client.responses.create(model="shop", input="everything", conversation=first.conversation.id)
    assert third.output_text.startswith("user: hello | assistant: You said hello. | user: everything")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="shop", input="hello", conversation="other:1")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="shop", input="hello", conversation="acme:1", previous_response_id=first.id)


def test_one_in_the_background_is_taken_up_behind_any_number(client: OpenAI) -> None:
    begun = client.responses.create(model="shop", input="think", background=True)
    assert begun.status in ("queued", "in_progress", "completed")
    events = list(client.responses.retrieve(begun.id, stream=True))
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == STORY
    thought = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    assert "".join(thought) == THOUGHT
    for seen in numbers:
        rest = list(client.responses.retrieve(begun.id, stream=True, starting_after=seen))
        assert rest == events[seen + 1 :]
    last: Any = events[-1]
    assert client.responses.retrieve(begun.id).output == last.response.output


def test_how_a_response_was_begun_is_told_whenever_it_is_asked_for(client: OpenAI) -> None:
    key = {"Idempotency-Key": "begun-1"}
    begun, again = (
        client.responses.create(model="shop", input="hello", background=True, extra_headers=key) for _ in range(2)
    )
    assert (again.id, begun.background, again.background) == (begun.id, True, True)
    created: Any = next(iter(client.responses.retrieve(begun.id, stream=True)))
    assert created.response.background is True
    assert client.responses.retrieve(begun.id).background is True
    assert client.responses.cancel(begun.id).background is True
    waited_for = client.responses.create(model="shop", input="hello")
    assert (waited_for.background, client.responses.retrieve(waited_for.id).background) == (False, False)


def test_what_the_model_thought_is_an_item_of_the_output(client: OpenAI) -> None:
    with client.responses.stream(model="shop", input="think") as stream:
        kinds = [event.type for event in stream]
        done: Any = stream.get_final_response()
    reasoning, message = done.output
    assert (reasoning.type, message.type, done.output_text) == ("reasoning", "message", STORY)
    assert [part.text for part in reasoning.summary] == [THOUGHT]
    assert kinds.index("response.reasoning_summary_part.done") < kinds.index("response.output_text.delta")
    items: Any = [item.to_dict() for item in done.output]
    said: Any = [{"role": "user", "content": "think"}, *items, {"role": "user", "content": "everything"}]
    again = client.responses.create(model="shop", input=said)
    assert again.output_text == f"user: think | assistant: {STORY} | user: everything"


def test_the_client_runs_its_own_tools(client: OpenAI) -> None:
    with client.responses.stream(model="shop", input="weather", tools=[WEATHER]) as stream:
        for _ in stream:
            pass
        first: Any = stream.get_final_response()
    assert first.status == "completed"
    assert first.output_text == "Let me see. "
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.arguments for call in calls] == ['{"place":"Oslo"}', '{"place":"Bern"}']
    outputs: Any = [
        {"type": "function_call_output", "call_id": call.call_id, "output": weather}
        for call, weather in zip(calls, ("rain", "snow"), strict=True)
    ]
    second, again = (
        client.responses.create(model="shop", input=outputs, previous_response_id=first.id, tools=[WEATHER])
        for _ in range(2)
    )
    assert (second.id, second.output_text) == (f"{first.id}.2", "Seen rain, snow.")
    assert again == second
    assert client.responses.retrieve(second.id).output_text == "Seen rain, snow."
    whole: Any = [{"role": "user", "content": "weather"}, *[item.to_dict() for item in calls], *outputs]
    third = client.responses.create(model="shop", input=[*whole, {"role": "user", "content": "everything"}])
    assert third.output_text == ("user: weather | assistant:  | tool: rain | tool: snow | user: everything")


@pytest.mark.parametrize("named", ["message", "all"])
def test_items_of_earlier_responses_are_named_by_their_ids(client: OpenAI, pump: Pump, named: str) -> None:
    first: Any = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    message, *calls = first.output
    reference = {"type": "item_reference"}
    said: list[Any] = [{"role": "user", "content": "weather"}, {**reference, "id": message.id}]
    said += [{**reference, "id": call.id} if named == "all" else call.to_dict() for call in calls]
    said += [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"} for call in calls]
    second: Any = client.responses.create(model="shop", input=said, tools=[WEATHER])
    assert second.id == f"{first.id}.2"
    said += [{**reference, "id": item.id} for item in second.output]
    said += [{**reference, "id": "rs_abc.1"}, {"role": "user", "content": "everything"}]
    seen = "tool: rain | tool: rain | assistant: Seen rain, rain."
    told = f"user: weather | assistant: Let me see.  | {seen} | user: everything"
    assert client.responses.create(model="shop", input=said).output_text == told
    if named == "all":
        handle = pump.client.handle(first.id.removeprefix("resp_"))
        wait_until(lambda: is_finished(handle), "the chain is finished")
        forget(pump)
        assert client.responses.create(model="shop", input=said).output_text == told


@pytest.mark.parametrize("item", ["msg_abc", "msg_abc.0", "fc_abc", "file_1", "msg_{turn}.7", "fc_{turn}-c9-0"])
def test_what_is_no_item_of_a_response_is_refused(client: OpenAI, item: str) -> None:
    turn = client.responses.create(model="shop", input="hello").id.removeprefix("resp_") if "{" in item else ""
    said: Any = [{"type": "item_reference", "id": item.format(turn=turn)}, {"role": "user", "content": "hm"}]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.create(model="shop", input=said)
    assert refusal.value.param == "input[0].id"


def test_items_of_another_tenant_are_nobodys(client: OpenAI, pump: Pump) -> None:
    theirs = pump.client.submit("evil:1", "hello").turn_id
    told: list[str] = []
    for turn in (theirs, "nobodys"):
        for item in (f"msg_{turn}.1", f"fc_{turn}-c1-0"):
            said: Any = [{"type": "item_reference", "id": item}, {"role": "user", "content": "hm"}]
            with pytest.raises(openai.NotFoundError) as refusal:
                client.responses.create(model="shop", input=said)
            told.append(refusal.value.message)
    assert len(set(told)) == 1


def is_finished(handle: TurnHandle) -> bool:
    snapshot = handle.snapshot()
    return snapshot is not None and snapshot.awaits == "nobody"


def test_results_come_all_together_and_the_user_may_add_to_them(client: OpenAI, pump: Pump) -> None:
    first = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    calls = [item.call_id for item in first.output if item.type == "function_call"]
    outputs: Any = [{"type": "function_call_output", "call_id": call, "output": "rain"} for call in calls]
    partly: list[Any] = [outputs[:1], [*outputs[:1], {"role": "user", "content": "hurry"}]]
    for some in partly:
        with pytest.raises(openai.BadRequestError, match="has no result"):
            client.responses.create(model="shop", input=some, previous_response_id=first.id)
    more: Any = [*outputs, {"role": "user", "content": "and in Rome?"}]
    second, again = (client.responses.create(model="shop", input=more, previous_response_id=first.id) for _ in range(2))
    assert again.output_text == second.output_text == "Seen rain, rain."
    said = pump.client.handle(first.id.removeprefix("resp_")).transcript()
    assert [message.content for message in said if message.role == "user"] == ["weather", "and in Rome?"]


def test_once_the_events_are_gone_only_a_last_part_is_told(client: OpenAI, pump: Pump) -> None:
    plain = client.responses.create(model="shop", input="hello")
    first = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    calls = [item.call_id for item in first.output if item.type == "function_call"]
    outputs: Any = [{"type": "function_call_output", "call_id": call, "output": "rain"} for call in calls]
    second = client.responses.create(model="shop", input=outputs, previous_response_id=first.id)
    for one in (plain, first):
        handle = pump.client.handle(one.id.removeprefix("resp_"))
        wait_until(lambda handle=handle: is_finished(handle), "the chain is finished")
    forget(pump)
    assert client.responses.retrieve(plain.id).output_text == plain.output_text
    for one in (first, second):
        with pytest.raises(openai.APIStatusError) as gone:
            client.responses.retrieve(one.id)
        assert gone.value.status_code == 410
    again = client.responses.create(model="shop", input=outputs, previous_response_id=first.id)
    assert again.output_text == second.output_text


@pytest.mark.full
def test_a_cancel_is_the_turns(client: OpenAI, pump: Pump) -> None:
    begun = client.responses.create(model="shop", input="refund", background=True)
    turn_id = begun.id.removeprefix("resp_")
    assert client.responses.cancel(begun.id).status == "cancelled"
    assert pump.client.handle(turn_id).result(timeout_s=30).ending == "cancelled"
    assert client.responses.cancel(begun.id).status == "cancelled"
    last: Any = list(client.responses.retrieve(begun.id, stream=True))[-1]
    assert (last.type, last.response.status) == ("response.failed", "cancelled")


def test_a_person_is_waited_for(client: OpenAI, pump: Pump) -> None:
    begun = client.responses.create(model="shop", input="refund", background=True)
    turn_id = begun.id.removeprefix("resp_")
    stream = iter(client.responses.retrieve(begun.id, stream=True))
    assert next(stream).type == "response.created"
    next(event for event in pump.client.handle(turn_id).events(timeout_s=30) if event.kind == "turn.parked")
    assert client.responses.retrieve(begun.id).status == "in_progress"
    pump.client.approve(f"{turn_id}-c1-0")
    last: Any = list(stream)[-1]
    assert last.response.output_text == "Seen paid back."


@pytest.mark.full
def test_what_cannot_be_found_or_taken(client: OpenAI) -> None:
    for unknown in ("resp_nobodys", "resp_nobodys.2"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(unknown)
    tools: Any = [{"type": "web_search"}]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.create(model="shop", input="hello", tools=tools)
    assert refusal.value.param == "tools[0]"
    image: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.create(model="shop", input=image)
    assert refusal.value.param == "input[0].content[0].image_url"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_brain_is_a_model_for_our_own_provider(gateway: GatewayThread, key: str, streamed: bool) -> None:
    provider = OpenAIResponsesProvider(base_url=f"{gateway.url}/v1", api_key=key)
    tool = ToolSpec(name="weather", description="", parameters=PLACE)
    said = [system("Be brief."), user("weather")]
    first = ask(provider, request(*said, model="shop", tools=(tool,), timeout_s=60), streamed=streamed)
    assert (first.text, first.finish_reason) == ("Let me see. ", "tool_calls")
    assert [call.arguments for call in first.calls] == [{"place": "Oslo"}, {"place": "Bern"}]
    assert first.usage.input_tokens > 0
    said.append(Message(role="assistant", content=first.text, calls=first.calls))
    said += [result(call.id, f"rain {n}") for n, call in enumerate(first.calls)]
    last = ask(provider, request(*said, model="shop", tools=(tool,), timeout_s=60), streamed=streamed)
    assert (last.text, last.finish_reason) == ("Seen rain 0, rain 1.", "stop")
    provider.close()
