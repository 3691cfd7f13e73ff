"""Responses that are deleted by OpenAI's own client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import OpenAI

from brainq import TurnHandle
from tests.integration.gateway.openai.conftest import PLACE
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("pools")
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}


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
