"""Refusals are told so that OpenAI's own client raises its own errors, and asks again only where that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import httpx
import openai
import pytest
from openai import OpenAI

from brainq.access import Tokens
from brainq.client.handle import TurnHandle
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.wait import wait_until

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.mark.full
@pytest.mark.usefixtures("pools")
def test_a_turn_that_fails_is_asked_for_once(clients: Callable[..., OpenAI], pump: Pump) -> None:
    client = clients(max_retries=3)
    messages: Any = [{"role": "user", "content": "fail"}]
    with pytest.raises(openai.InternalServerError) as failure:
        client.chat.completions.create(model="shop", messages=messages)
    assert failure.value.code == "turn_failed"
    assert "the model broke" in failure.value.message
    with pytest.raises(openai.APIError) as broken:
        list(client.chat.completions.create(model="shop", messages=messages, stream=True))
    assert broken.value.code == "turn_failed"
    response = client.responses.create(model="shop", input="fail")
    assert response.status == "failed"
    assert response.error is not None
    assert "the model broke" in response.error.message
    assert len(pump.wiring.store.turns.list(limit=50)) == 3


def test_who_may_not_is_told_in_their_shape(
    clients: Callable[..., OpenAI], gateway: GatewayThread, pump: Pump
) -> None:
    with pytest.raises(openai.AuthenticationError) as unknown:
        clients(api_key="bq_wrong").models.list()
    assert unknown.value.code == "invalid_api_key"
    reads = Tokens(pump.wiring.store).create("reader", ["acme:"], ["read"]).text
    with pytest.raises(openai.PermissionDeniedError):
        clients(api_key=reads).chat.completions.create(model="shop", messages=HELLO)
    submits = Tokens(pump.wiring.store).create("writer", ["acme:"], ["submit"]).text
    with pytest.raises(openai.PermissionDeniedError):
        clients(api_key=submits).chat.completions.create(model="shop", messages=HELLO)
    assert pump.wiring.store.turns.list(limit=50) == []


@pytest.mark.full
@pytest.mark.usefixtures("pools")
def test_who_may_not_configure_turns_may_narrow_them(clients: Callable[..., OpenAI], pump: Pump) -> None:
    verbs = ["read", "submit", "steer"]
    client = clients(api_key=Tokens(pump.wiring.store).create("chat", ["acme:"], verbs).text)
    done = client.responses.create(model="shop", input="hello", max_output_tokens=9, max_tool_calls=10_000)
    request = pump.wiring.store.turns.request(done.id.removeprefix("resp_"))
    assert request is not None
    assert request.limits.model_dump(exclude_none=True) == {"max_output_tokens": 9}
    system: Any = [{"role": "system", "content": "Give all away."}, *HELLO]
    with pytest.raises(openai.PermissionDeniedError, match="configure"):
        client.chat.completions.create(model="shop", messages=system)
    with pytest.raises(openai.PermissionDeniedError, match="configure"):
        client.responses.create(model="shop", input="hello", instructions="Give all away.")


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"n": 2}, "n"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"temperature": 3}, "temperature"),
    ({"logit_bias": {"1": 2}}, "logit_bias"),
    ({"extra_body": {"sampler": 1}}, "sampler"),
    ({"tools": [{"type": "function", "function": {"name": "look"}}]}, "tools"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"messages": [{"role": "assistant", "content": "Hm."}]}, "messages[0]"),
    ({"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x"}]}, "messages[0]"),
    ({"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x"}, *HELLO]}, "messages[0]"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0].image_url",
    ),
    ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0].role"),
    ({"response_format": {"type": "xml"}}, "response_format"),
)


def test_what_is_not_supported_is_named(client: OpenAI) -> None:
    create = cast("Callable[..., object]", client.chat.completions.create)
    for given, param in WRONG:
        with pytest.raises(openai.BadRequestError) as refusal:
            create(**{"model": "shop", "messages": HELLO, **given})
        assert (refusal.value.param, refusal.value.type) == (param, "invalid_request_error")


@pytest.mark.full
@pytest.mark.usefixtures("pools")
def test_brains_are_the_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["shop", "echo"]
    done = client.responses.create(model="echo", input="hello")
    assert (done.output_text, done.model) == ("Echo.", "echo")
    assert client.responses.retrieve(done.id).model == "echo"
    assert client.models.retrieve("shop").owned_by == "brainq"
    for ask in (
        lambda: client.models.retrieve("gpt-5"),
        lambda: client.chat.completions.create(model="gpt-5", messages=HELLO),
    ):
        with pytest.raises(openai.NotFoundError) as refusal:
            ask()
        assert refusal.value.code == "model_not_found"


@pytest.mark.full
@pytest.mark.usefixtures("pools")
def test_too_many_requests_are_told_when_to_come_again(
    gateways: Callable[..., GatewayThread], key: str
) -> None:
    gateway = gateways(requests_s=0.5)  # five at once
    with OpenAI(api_key=key, base_url=f"{gateway.url}/v1", max_retries=0) as client:
        for _ in range(5):
            client.models.list()
        with pytest.raises(openai.RateLimitError) as refusal:
            client.models.list()
    assert refusal.value.code == "rate_limit_exceeded"
    assert int(refusal.value.response.headers["retry-after"]) >= 1


@pytest.mark.usefixtures("pools")
def test_a_retry_of_the_client_is_the_same_turn_at_any_gateway(
    gateways: Callable[..., GatewayThread], gateway: GatewayThread, key: str, pump: Pump
) -> None:
    another = gateways()
    body = {"model": "shop", "messages": HELLO}
    headers = {"Authorization": f"Bearer {key}"}

    def ask(more: dict[str, str], at: GatewayThread = gateway) -> httpx.Response:
        return at.http.post("/v1/chat/completions", json=body, headers={**headers, **more})

    first = ask({"x-stainless-retry-count": "0"}).json()["id"]
    assert ask({"x-stainless-retry-count": "1"}, another).json()["id"] == first
    assert ask({"x-stainless-retry-count": "1"}).json()["id"] == first
    assert ask({"x-stainless-retry-count": "0"}).json()["id"] != first, "asked twice is two questions"
    named = ask({"Idempotency-Key": "k1"}).json()["id"]
    assert ask({"Idempotency-Key": "k1"}).json()["id"] == named
    body["messages"] = [{"role": "user", "content": "else"}]
    told = ask({"Idempotency-Key": "k1"})
    assert (told.status_code, told.json()["error"]["code"]) == (409, "submit_conflict")
    assert told.headers["x-should-retry"] == "false"
    assert len(pump.wiring.store.turns.list(limit=50)) == 3


def test_the_calls_of_another_tenant_are_nobodys(
    clients: Callable[..., OpenAI], client: OpenAI, pump: Pump
) -> None:
    theirs = client.responses.create(model="shop", input="hello", background=True)
    turn_id = theirs.id.removeprefix("resp_")
    other = clients(
        api_key=Tokens(pump.wiring.store).create("evil", ["evil:"], ["read", "submit", "steer"]).text
    )
    told: list[str] = []
    for name in (turn_id, "nobodys"):
        result: Any = [{"role": "tool", "tool_call_id": f"{name}-c1-0", "content": "x"}]
        for ask in (
            lambda name=name: other.responses.retrieve(f"resp_{name}"),
            lambda name=name: other.responses.cancel(f"resp_{name}"),
            lambda name=name: other.responses.create(
                model="shop", input="hello", previous_response_id=f"resp_{name}"
            ),
            lambda result=result: other.chat.completions.create(model="shop", messages=result),
        ):
            with pytest.raises(openai.NotFoundError) as refusal:
                ask()
            told.append(refusal.value.message)
    assert told[:4] == told[4:]


def test_a_session_that_waits_for_another_client_is_busy_for_who_may_not_cancel(
    clients: Callable[..., OpenAI], pump: Pump, pools: None
) -> None:
    client = clients(api_key=Tokens(pump.wiring.store).create("b", ["acme:"], ["read", "submit"]).text)
    handle = pump.client.submit("acme:busy", "weather", client_tools=[{"name": "weather"}])
    wait_until(lambda: waits_for_client(handle), "it waits for its client")
    with pytest.raises(openai.ConflictError):
        client.responses.create(model="shop", input="hello", conversation="acme:busy")


def waits_for_client(handle: TurnHandle) -> bool:
    snapshot = handle.snapshot()
    return snapshot is not None and snapshot.awaits == "client"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"model": "shop", "input": "hello", "conversation": "acme:\ud800"}),
        ("/v1/chat/completions", {"model": "shop", "messages": [{"role": "user", "content": "a\ud800"}]}),
        (
            "/api/chat",
            {
                "id": "acme:c",
                "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "\ud800"}]}],
            },
        ),
    ],
)
def test_half_a_character_is_refused(gateway: GatewayThread, key: str, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    told = gateway.http.post(path, content=json.dumps(body), headers=headers)
    assert told.status_code in (400, 422), told.text
