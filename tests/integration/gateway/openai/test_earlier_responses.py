"""Earlier responses: what each was made from, what follows one, also in a branch, and what is left of a deleted one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import OpenAI

from brainq import TurnHandle
from tests.integration.gateway.openai.conftest import PLACE
from tests.support.blobs import png
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("pools")
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}
URL = f"data:image/png;base64,{base64.b64encode(png()).decode()}"


def texts(items: Any) -> list[str]:
    return [part.text for item in items for part in item.content if hasattr(part, "text")]


def test_what_the_user_said_and_the_conversation_before_it_are_listed(client: OpenAI) -> None:
    said: Any = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    done = client.responses.create(model="shop", input=said)
    listed = client.responses.input_items.list(done.id, order="asc")
    assert texts(listed.data) == ["one", "two", "three"]
    assert [item.role for item in listed.data] == ["user", "assistant", "user"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert texts(client.responses.input_items.list(done.id).data) == ["three", "two", "one"]
    later = client.responses.create(model="shop", input="four", previous_response_id=done.id)
    assert texts(client.responses.input_items.list(later.id)) == ["four"]


def test_the_items_come_page_by_page(client: OpenAI) -> None:
    said: Any = [{"role": role, "content": f"{n} {role}"} for n in range(3) for role in ("user", "assistant")]
    done = client.responses.create(model="shop", input=[*said, {"role": "user", "content": "last"}])
    for order in ("asc", "desc"):
        whole = list(client.responses.input_items.list(done.id, order=order, limit=100))
        assert len(whole) == 7
        assert list(client.responses.input_items.list(done.id, order=order, limit=2)) == whole
    first: Any = client.responses.input_items.list(done.id, limit=3)
    assert (first.object, first.has_more, first.first_id, first.last_id) == (
        "list",
        True,
        first.data[0].id,
        first.data[2].id,
    )
    last: Any = client.responses.input_items.list(done.id, limit=3, after=whole[3].id)
    assert (len(last.data), last.has_more) == (3, False)
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.input_items.list(done.id, after="msg_nobodys")
    assert refusal.value.param == "after"
    for many in (0, 101):
        with pytest.raises(openai.BadRequestError):
            client.responses.input_items.list(done.id, limit=many)


def test_files_are_named_and_images_brought_where_they_are_asked_for(client: OpenAI) -> None:
    note = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}
    content = [
        {"type": "input_text", "text": "hello"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
        note,
    ]
    asked: Any = [{"role": "user", "content": content}]
    done = client.responses.create(model="shop", input=asked)
    (item,) = list[Any](client.responses.input_items.list(done.id))
    assert [part.type for part in item.content] == ["input_text", "input_image", "input_file"]
    assert (item.content[1].image_url, item.content[2].filename) == (None, "a.txt")
    (item,) = list[Any](client.responses.input_items.list(done.id, include=["message.input_image.image_url"]))
    assert item.content[1].image_url == URL


def test_behind_the_clients_calls_their_results_are_listed(client: OpenAI, pump: Pump) -> None:
    first: Any = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(f"{first.id}.2")
    calls = [item.call_id for item in first.output if item.type == "function_call"]
    given: Any = [
        {"type": "function_call_output", "call_id": call, "output": said}
        for call, said in zip(calls, ("rain", "snow"), strict=True)
    ]
    second = client.responses.create(model="shop", input=[*given, {"role": "user", "content": "and in Rome?"}])
    items: Any = list(client.responses.input_items.list(second.id, order="asc"))
    outputs = [item for item in items if item.type == "function_call_output"]
    assert [(item.call_id, item.output) for item in outputs] == list(zip(calls, ("rain", "snow"), strict=True))
    assert texts([item for item in items if item.type == "message"]) == ["and in Rome?"]
    assert len({item.id for item in items}) == 3
    assert texts(client.responses.input_items.list(first.id)) == ["weather"]
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(f"{first.id}.3")

    handle = pump.client.handle(first.id.removeprefix("resp_"))
    wait_until(lambda: (seen := handle.snapshot()) is not None and seen.awaits == "nobody", "it is finished")
    forget(pump)
    assert texts(client.responses.input_items.list(first.id)) == ["weather"]
    with pytest.raises(openai.APIStatusError) as gone:
        client.responses.input_items.list(second.id)
    assert gone.value.status_code == 410


def session_of(response: Any) -> str:
    return response.conversation.id


@pytest.mark.parametrize("kept_in", ["redis", "sql"])
def test_a_question_to_an_older_response_begins_a_branch(client: OpenAI, pump: Pump, kept_in: str) -> None:
    first = client.responses.create(model="shop", input="look")
    second = client.responses.create(model="shop", input="two", previous_response_id=first.id)
    if kept_in == "sql":
        for one in (first, second):
            handle = pump.client.handle(one.id.removeprefix("resp_"))
            wait_until(lambda handle=handle: is_over(handle), "its chain is finished")
        forget(pump)
    branch = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    told = "user: look | assistant:  | tool: pears | assistant: Seen pears."
    assert branch.output_text == f"{told} | user: everything"
    assert session_of(branch).startswith("acme:")
    assert session_of(branch) != session_of(first) == session_of(second)
    later = client.responses.create(model="shop", input="everything", previous_response_id=branch.id)
    assert session_of(later) == session_of(branch)
    newest = client.responses.create(model="shop", input="everything", previous_response_id=second.id)
    assert session_of(newest) == session_of(first)


def is_over(handle: Any) -> bool:
    seen = handle.snapshot()
    return seen is not None and seen.awaits == "nobody"


def test_the_same_request_again_is_the_same_turn_on_either_way(client: OpenAI) -> None:
    first = client.responses.create(model="shop", input="one")
    on, branch = (
        [
            client.responses.create(
                model="shop",
                input="everything",
                previous_response_id=first.id,
                extra_headers={"Idempotency-Key": key},
            ).id
            for _ in range(2)
        ]
        for key in ("on-1", "branch-1")
    )
    assert on[0] == on[1] != branch[0] == branch[1]


def test_a_branch_has_what_the_session_began_with_and_its_files(client: OpenAI, pump: Pump) -> None:
    seen: Any = [
        {"type": "input_text", "text": "hello"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
    ]
    said: Any = [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": "it"},
        {"role": "user", "content": seen},
    ]
    first = client.responses.create(model="shop", input=said)
    client.responses.create(model="shop", input="two", previous_response_id=first.id)
    branch = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    assert branch.output_text.startswith("user: before | assistant: it | user: hello")
    request = pump.client.handle(branch.id.removeprefix("resp_")).request()
    (image,) = [one for message in request.history for one in message.attachments]
    assert pump.client.handle(request.turn_id).file(image.sha256).data == png()


def test_a_response_without_an_end_is_not_branched_from(client: OpenAI) -> None:
    first = client.responses.create(model="shop", input="refund", background=True)
    second = client.responses.create(model="shop", input="two", previous_response_id=first.id, background=True)
    assert session_of(second) == session_of(first)
    with pytest.raises(openai.BadRequestError, match="wait for its end, or send the conversation") as refusal:
        client.responses.create(model="shop", input="three", previous_response_id=first.id)
    assert refusal.value.param == "previous_response_id"
    for one in (second, first):
        client.responses.cancel(one.id)


def test_a_deleted_response_is_not_found(client: OpenAI, gateway: GatewayThread, key: str, pump: Pump) -> None:
    def create() -> Any:
        return client.responses.create(model="shop", input="hello", extra_headers={"Idempotency-Key": "hello-1"})

    done = create()
    answer = gateway.http.delete(f"/v1/responses/{done.id}", headers={"Authorization": f"Bearer {key}"})
    assert answer.json() == {"id": done.id, "object": "response", "deleted": True}
    reference: Any = [{"type": "item_reference", "id": done.output[0].id}, {"role": "user", "content": "everything"}]
    requests: list[Callable[[], object]] = [
        lambda: client.responses.retrieve(done.id),
        lambda: list(client.responses.retrieve(done.id, stream=True)),
        lambda: client.responses.input_items.list(done.id),
        lambda: client.responses.cancel(done.id),
        lambda: client.responses.delete(done.id),
        lambda: client.responses.create(model="shop", input="and?", previous_response_id=done.id),
        create,
    ]
    for send in requests:
        with pytest.raises(openai.NotFoundError):
            send()
    with pytest.raises(openai.BadRequestError, match="does not exist"):
        client.responses.create(model="shop", input=reference)
    # The conversation and the records have it still.
    later = client.responses.create(model="shop", input="everything", conversation=done.conversation.id)
    assert later.output_text == "user: hello | assistant: You said hello. | user: everything"
    assert pump.client.handle(done.id.removeprefix("resp_")).result(timeout_s=30).text == "You said hello."


def test_that_it_was_deleted_outlives_redis(client: OpenAI, pump: Pump) -> None:
    deleted, kept = (client.responses.create(model="shop", input=text) for text in ("one", "two"))
    client.responses.delete(deleted.id)
    for one in (deleted, kept):
        handle = pump.client.handle(one.id.removeprefix("resp_"))
        wait_until(lambda handle=handle: is_finished(handle), "its chain is finished")
    forget(pump)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(deleted.id)
    assert client.responses.retrieve(kept.id).output_text == kept.output_text


def is_finished(handle: TurnHandle) -> bool:
    seen = handle.snapshot()
    return seen is not None and seen.awaits == "nobody"


def test_a_turn_that_lives_is_cancelled(client: OpenAI, pump: Pump) -> None:
    begun = client.responses.create(model="shop", input="refund", background=True)
    client.responses.delete(begun.id)
    assert pump.client.handle(begun.id.removeprefix("resp_")).result(timeout_s=30).ending == "cancelled"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(begun.id)


def test_with_a_part_the_whole_response_is_deleted(client: OpenAI) -> None:
    first: Any = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    outputs: Any = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "rain"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = client.responses.create(model="shop", input=outputs)
    client.responses.delete(first.id)
    for one in (first, second):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(one.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="shop", input=outputs)
