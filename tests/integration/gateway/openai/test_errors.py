"""Refusals are told so that OpenAI's own client raises its own errors, and asks again only where that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import httpx
import openai
import pytest
from openai import OpenAI

from brainq.app.access import Tokens
from brainq.client.handle import TurnHandle
from brainq.runtime.observe.logs import ids_of_record, stamp_record
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


@pytest.mark.usefixtures("pools")
def test_an_answer_that_never_fits_its_schema_is_no_success(client: OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "no form"}]
    schema: Any = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form: Any = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
    with pytest.raises(openai.InternalServerError, match="does not fit its schema") as refusal:
        client.chat.completions.create(model="shop", messages=messages, response_format=form)
    assert refusal.value.code == "invalid_output"
    text: Any = {"format": {"type": "json_schema", "name": "form", "schema": schema}}
    response = client.responses.create(model="shop", input="no form", text=text)
    assert (response.status, response.output_text) == ("failed", "I would rather not.")
    assert response.error is not None
    assert response.error.code == "invalid_output"  # pyright: ignore[reportUnnecessaryComparison]
    assert "does not fit its schema" in response.error.message
    last: Any = list(client.responses.retrieve(response.id, stream=True))[-1]
    assert (last.type, last.response.error) == ("response.failed", response.error)


@pytest.mark.usefixtures("pools")
def test_what_the_models_service_refuses_has_its_own_status(client: OpenAI) -> None:
    for said, kind, code in (
        ("too long", openai.BadRequestError, "context_length_exceeded"),
        ("busy", openai.RateLimitError, "rate_limit_exceeded"),
    ):
        messages: Any = [{"role": "user", "content": said}]
        for ask in (
            lambda messages=messages: client.chat.completions.create(model="shop", messages=messages),
            lambda said=said: client.responses.create(model="shop", input=said),
        ):
            with pytest.raises(kind) as refusal:
                ask()
            assert refusal.value.code == code
            assert refusal.value.response.headers["x-should-retry"] == "false"
    begun = client.responses.create(model="shop", input="too long", background=True)
    last: Any = list(client.responses.retrieve(begun.id, stream=True))[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "context_length_exceeded")


def test_who_may_not_is_told_in_their_shape(clients: Callable[..., OpenAI], gateway: GatewayThread, pump: Pump) -> None:
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
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].image_url"),
    ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0].role"),
    ({"response_format": {"type": "xml"}}, "response_format"),
)


def test_what_is_not_supported_is_named(client: OpenAI) -> None:
    create = cast("Callable[..., object]", client.chat.completions.create)
    for given, param in WRONG:
        with pytest.raises(openai.BadRequestError) as refusal:
            create(**{"model": "shop", "messages": HELLO, **given})
        assert (refusal.value.param, refusal.value.type) == (param, "invalid_request_error")


@pytest.mark.usefixtures("pools")
def test_a_lenient_gateway_leaves_out_what_it_does_not_know(
    gateways: Callable[..., GatewayThread], clients: Callable[..., OpenAI]
) -> None:
    client = clients(base_url=f"{gateways(openai_lenient=True).url}/v1")
    more: Any = {"top_k": 4, "chat_template_kwargs": {"enable_thinking": False}}
    done = client.chat.completions.create(model="shop", messages=HELLO, extra_body=more)
    assert done.choices[0].message.content == "You said hello."
    assert client.responses.create(model="shop", input="hello", extra_body=more).output_text == "You said hello."
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="shop", messages=HELLO, n=2)


def test_every_answer_has_the_id_of_its_request(
    client: OpenAI, gateway: GatewayThread, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(lambda record: stamp_record(record) is None)  # as the gateway's own handler does

    def logged() -> set[str | None]:
        return {ids_of_record(record).get("request_id") for record in caplog.records}

    with caplog.at_level("INFO", "brainq.gateway"):
        page = client.models.list(extra_headers={"X-Request-ID": "from-a-proxy.7"})
        assert page._request_id == "from-a-proxy.7"  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(openai.NotFoundError) as refusal:
            client.models.retrieve("gpt-5", extra_headers={"X-Request-ID": "no id!"})
        ids = {"from-a-proxy.7", refusal.value.request_id}
        wait_until(lambda: ids <= logged(), "both are logged")
    assert refusal.value.request_id not in (None, "", "no id!")
    assert gateway.http.get("/healthz").headers["x-request-id"]


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
def test_too_many_requests_are_told_when_to_come_again(gateways: Callable[..., GatewayThread], key: str) -> None:
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
    assert ask({"x-stainless-retry-count": "2"}).json()["id"] == first
    assert ask({"x-stainless-retry-count": "0"}).json()["id"] != first, "asked twice is two questions"
    named = ask({"Idempotency-Key": "k1"}).json()["id"]
    assert ask({"Idempotency-Key": "k1"}).json()["id"] == named
    body["messages"] = [{"role": "user", "content": "else"}]
    told = ask({"Idempotency-Key": "k1"})
    assert (told.status_code, told.json()["error"]["code"]) == (409, "submit_conflict")
    assert told.headers["x-should-retry"] == "false"
    assert len(pump.wiring.store.turns.list(limit=50)) == 3


def test_a_retry_of_what_was_refused_is_not_another_request_of_the_same_words(
    gateways: Callable[..., GatewayThread], gateway: GatewayThread, key: str, pump: Pump, pools: None
) -> None:
    few = gateways(requests_s=0.1)  # one, and the next in ten seconds

    def ask(at: GatewayThread, count: int, **more: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}", "x-stainless-retry-count": str(count), **more}
        return at.http.post("/v1/responses", json={"model": "shop", "input": "hello"}, headers=headers)

    first = ask(few, 0).json()["id"]
    assert ask(few, 0).status_code == 429
    assert ask(few, 1).status_code == 429
    second = ask(gateway, 2).json()["id"]
    assert second != first, "it is the one that was refused twice"
    other = {"X-Session-ID": "acme:other"}
    assert ask(gateway, 0, **other).json()["id"] not in (first, second)
    assert ask(gateway, 1).json()["id"] == first, "no other is left that it could be"
    assert len(pump.wiring.store.turns.list(limit=50)) == 3


def test_a_retry_of_what_was_cut_is_not_one_that_is_still_open(
    gateway: GatewayThread, key: str, pump: Pump, pools: None
) -> None:
    def ask(count: int) -> str:
        body = {"model": "shop", "input": "refund"}  # it waits for a person
        headers = {"Authorization": f"Bearer {key}", "x-stainless-retry-count": str(count)}
        with httpx.Client(base_url=gateway.url, verify=False) as http, suppress(httpx.ReadTimeout):
            told = http.post("/v1/responses", json=body, headers=headers, timeout=0.3 if count == 0 else 30)
            return told.json()["id"]
        return ""

    def tries() -> list[str]:
        state = pump.wiring.state
        redis: Any = state.redis
        (name,) = redis.keys(state.keys.tries("*"))
        return sorted(str(text.split()[1]) for text in redis.hvals(name))

    def turns() -> list[str]:
        return [row.turn_id for row in pump.wiring.store.turns.list(limit=50)]

    with ThreadPoolExecutor(2) as threads:
        body = {"model": "shop", "input": "refund"}
        headers = {"Authorization": f"Bearer {key}", "x-stainless-retry-count": "0"}
        running = threads.submit(gateway.http.post, "/v1/responses", json=body, headers=headers, timeout=60)
        (open_one,) = wait_until(turns, "one is open")
        assert ask(0) == ""
        assert wait_until(lambda: tries() == ["cut", "open"], "the other was cut")
        (cut_one,) = set(turns()) - {open_one}
        again = threads.submit(ask, 1)
        wait_until(lambda: tries() == ["open", "open"], "it is asked for again")
        wait_until(lambda: len(pump.client.approvals()) == 2, "both wait for a person")
        for turn_id in (open_one, cut_one):
            pump.client.approve(f"{turn_id}-c1-0")
        assert again.result() == f"resp_{cut_one}"
        assert running.result().json()["id"] == f"resp_{open_one}"
    assert len(turns()) == 2


@pytest.mark.full
@pytest.mark.usefixtures("pools")
def test_as_many_turns_as_requests_though_most_are_refused_first(
    gateways: Callable[..., GatewayThread], key: str, pump: Pump
) -> None:
    with OpenAI(api_key=key, base_url=f"{gateways(requests_s=1).url}/v1", max_retries=8) as client:

        def ask(_: int) -> str:
            return client.responses.create(model="shop", input="hello").id

        with ThreadPoolExecutor(14) as threads:
            ids = list(threads.map(ask, range(14)))
    assert len(set(ids)) == 14
    assert len(pump.wiring.store.turns.list(limit=50)) == 14


def test_the_calls_of_another_tenant_are_nobodys(clients: Callable[..., OpenAI], client: OpenAI, pump: Pump) -> None:
    theirs = client.responses.create(model="shop", input="hello", background=True)
    turn_id = theirs.id.removeprefix("resp_")
    other = clients(api_key=Tokens(pump.wiring.store).create("evil", ["evil:"], ["read", "submit", "steer"]).text)
    told: list[str] = []
    for name in (turn_id, "nobodys"):
        result: Any = [{"role": "tool", "tool_call_id": f"{name}-c1-0", "content": "x"}]
        for ask in (
            lambda name=name: other.responses.retrieve(f"resp_{name}"),
            lambda name=name: other.responses.cancel(f"resp_{name}"),
            lambda name=name: other.responses.create(model="shop", input="hello", previous_response_id=f"resp_{name}"),
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


def test_results_need_the_verb_steer(clients: Callable[..., OpenAI], pump: Pump, pools: None) -> None:
    client = clients(api_key=Tokens(pump.wiring.store).create("s", ["acme:"], ["read", "submit"]).text)
    handle = pump.client.submit("acme:mine", "weather", client_tools=[{"name": "weather"}])
    wait_until(lambda: waits_for_client(handle), "it waits for its client")
    calls = [f"{handle.turn_id}-c1-{n}" for n in range(2)]
    messages: Any = [{"role": "tool", "tool_call_id": call, "content": "rain"} for call in calls]
    items: Any = [{"type": "function_call_output", "call_id": call, "output": "rain"} for call in calls]
    for ask in (
        lambda: client.chat.completions.create(model="shop", messages=messages),
        lambda: client.responses.create(model="shop", input=items),
    ):
        with pytest.raises(openai.PermissionDeniedError, match="steer"):
            ask()
    assert waits_for_client(handle)


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
            {"id": "acme:c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "\ud800"}]}]},
        ),
    ],
)
def test_half_a_character_is_refused(gateway: GatewayThread, key: str, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    told = gateway.http.post(path, content=json.dumps(body), headers=headers)
    assert told.status_code in (400, 422), told.text
