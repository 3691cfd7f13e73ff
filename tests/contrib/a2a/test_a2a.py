"""A2A by the SDK's own client, against a real gateway: a task is a turn, whatever is cut off, sent twice or refused."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types.a2a_pb2 import (
    ROLE_USER,
    TASK_STATE_CANCELED,
    TASK_STATE_COMPLETED,
    TASK_STATE_INPUT_REQUIRED,
    TASK_STATE_SUBMITTED,
    TASK_STATE_WORKING,
    AgentCard,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf import json_format, struct_pb2

from brainq import Brain
from brainq.app.access import Verb
from brainq.app.devserver.ports import free_port
from brainq.contrib.a2a.routes import METHODS
from brainq.contrib.a2a.tasks import ANSWER
from brainq.errors import SetupError
from brainq.gateway.edge import caller_rates
from brainq.runtime.settings.deployment import load_settings
from tests.integration.gateway.test_door import token
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.pumping import pumping
from tests.support.wait import wait_until

Gateways = Callable[..., GatewayThread]


def reached(gateways: Gateways, **given: Any) -> GatewayThread:
    """A gateway whose cards say where it is."""
    port = free_port()
    return gateways(port=port, a2a=f"http://127.0.0.1:{port}", **given)


@pytest.fixture
def gateway(gateways: Gateways) -> GatewayThread:
    return reached(gateways)


@asynccontextmanager
async def agent(
    gateway: GatewayThread, headers: dict[str, str] | None = None, *, streaming: bool = True
) -> AsyncGenerator[Client]:
    """The SDK's client, made from the gateway's card."""
    async with httpx.AsyncClient(timeout=30, headers=headers, verify=False) as http:
        card = await A2ACardResolver(http, gateway.url).get_agent_card()
        config = ClientConfig(httpx_client=http, streaming=streaming)
        yield ClientFactory(config).create(card)


def run(made: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(made, 50)

    return asyncio.run(bounded())


def message(*said: str | dict[str, Any], **fields: Any) -> SendMessageRequest:
    parts = [
        Part(text=part) if isinstance(part, str) else Part(data=json_format.ParseDict(part, struct_pb2.Value()))
        for part in said
    ]
    fields.setdefault("message_id", "m-1")
    return SendMessageRequest(message=Message(role=ROLE_USER, parts=parts, **fields))


async def sent(client: Client, request: SendMessageRequest) -> Task:
    """The task that a plain send is answered with."""
    (only,) = [response async for response in client.send_message(request)]
    return only.task


class Reader:
    """Holds the task as a client does: the last one it was given, and each update taken over it."""

    def __init__(self) -> None:
        self.task = Task()
        self.states: list[int] = []

    def take(self, response: StreamResponse) -> None:
        if response.HasField("task"):
            self.task.CopyFrom(response.task)
        elif response.HasField("artifact_update"):
            append_artifact_to_task(self.task, response.artifact_update)
        else:
            self.task.status.CopyFrom(response.status_update.status)
        self.states.append(self.task.status.state)

    @property
    def answer(self) -> str:
        return answer_of(self.task)


def answer_of(task: Task) -> str:
    (found,) = [artifact for artifact in task.artifacts if artifact.artifact_id == ANSWER]
    return "".join(part.text for part in found.parts)


def asked_of(task: Task) -> dict[str, Any]:
    """The one thing that the task asks."""
    (data,) = [part.data for part in task.status.message.parts if part.HasField("data")]
    return json_format.MessageToDict(data)


def test_a_card_says_where_to_ask_and_what_its_tools_are_only_to_who_is_let_in(gateways: Gateways, pump: Pump) -> None:
    headers = token(pump, "anybody", "*")
    gateway = reached(gateways)

    async def cards(path: str) -> AgentCard:
        async with httpx.AsyncClient(verify=False) as http:
            return await A2ACardResolver(http, f"{gateway.url}{path}").get_agent_card()

    card = run(cards(""))
    assert run(cards("/a2a/gate")) == card
    assert (card.name, card.capabilities.streaming) == ("gate", True)
    assert (card.capabilities.push_notifications, card.capabilities.extended_agent_card) == (False, True)
    assert card.security_schemes["token"].http_auth_security_scheme.scheme == "bearer"
    assert [skill.id for skill in card.skills] == ["chat"]
    with pytest.raises(AgentCardResolutionError):
        run(cards("/a2a/other"))

    async def extended() -> AgentCard:
        async with agent(gateway, headers) as client:
            return await client.get_extended_agent_card(GetExtendedAgentCardRequest())

    skills = {skill.id: list(skill.tags) for skill in run(extended()).skills}
    assert skills == {
        "chat": ["chat"],
        "save": ["local_write"],
        "look": ["read_only"],
        "order": ["network"],
        "named": ["network"],
    }


def test_a_plain_send_is_answered_when_the_task_is_over(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            task = await sent(client, message("look", " 😀"))
            assert task.status.state == TASK_STATE_COMPLETED
            assert answer_of(task) == "Read: look\n\n 😀"
            got = await client.get_task(GetTaskRequest(id=task.id, history_length=1))
            assert [part.text for said in got.history for part in said.parts] == [answer_of(task)]
            del got.history[:]
            assert got == task
            again = await sent(client, message("look", " 😀"))
            assert again == task, "the same message is the same task"
            with pytest.raises(InvalidParamsError):
                await sent(client, message("something else"))
            later = await sent(client, message("look", message_id="m-2", context_id=task.context_id))
            assert (later.context_id, later.id != task.id) == (task.context_id, True)
            assert answer_of(later) == "Read: seen"
            forgotten.append(later)

    forgotten: list[Task] = []
    with pumping(pump):
        run(ask())
        (later,) = forgotten
        pump.settle(pump.client.handle(later.id))
    assert len(pump.client.session(later.context_id).history()) == 2
    forget(pump)

    async def from_sql() -> Task:
        async with agent(gateway) as client:
            return await client.get_task(GetTaskRequest(id=later.id))

    kept = run(from_sql())
    assert (kept.status.state, answer_of(kept)) == (TASK_STATE_COMPLETED, "Read: seen")


def test_a_send_that_does_not_wait_and_a_wait_that_ends_say_how_it_stands(gateways: Gateways, pump: Pump) -> None:
    gateway = reached(gateways, wait_s=0.05)

    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            request = message("look")
            request.configuration.return_immediately = True
            assert (await sent(client, request)).status.state == TASK_STATE_WORKING
            waiting = message("look", message_id="m-2", context_id="c1")
            assert (await sent(client, waiting)).status.state == TASK_STATE_WORKING
            queued = message("look", message_id="m-3", context_id="c1")
            assert (await sent(client, queued)).status.state == TASK_STATE_SUBMITTED

    run(ask())
    assert len(gateway.gateway.streams) == 0


def test_a_send_that_finds_no_place_to_wait_in_is_told_how_it_stands(gateways: Gateways) -> None:
    gateway = reached(gateways, streams=1)

    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            assert (await sent(client, message("look"))).status.state == TASK_STATE_WORKING

    with gateway.gateway.streams.enter("somebody"):
        run(ask())


def test_whoever_subscribes_again_in_the_middle_holds_the_same_whole(gateway: GatewayThread, pump: Pump) -> None:
    """A reader is dropped at every doorbell, and comes again; each time another one comes, too, and stays."""
    first, stayed = Reader(), list[Reader]()

    async def ask() -> None:
        async with agent(gateway) as client:
            stream = aiter(client.send_message(message("look")))
            first.take(await anext(stream))
            task_id = first.task.id

            async def rest(reader: Reader, left: AsyncIterator[StreamResponse]) -> None:
                async for response in left:
                    reader.take(response)

            reading = [asyncio.create_task(rest(first, stream))]
            while bell := pump.take("brainq.turns", "brainq.tools.read_only"):
                stayed.append(Reader())
                again = aiter(client.subscribe(SubscribeToTaskRequest(id=task_id)))
                stayed[-1].take(await anext(again))
                reading.append(asyncio.create_task(rest(stayed[-1], again)))
                dropped = aiter(client.subscribe(SubscribeToTaskRequest(id=task_id)))
                assert (await anext(dropped)).HasField("task")
                await dropped.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
                await asyncio.to_thread(pump.answer, bell)
            await asyncio.to_thread(pump.settle, pump.client.handle(task_id))
            await asyncio.gather(*reading)
            got = await client.get_task(GetTaskRequest(id=task_id))
            assert all(one_part(reader.task) == got for reader in (first, *stayed))
            with pytest.raises(UnsupportedOperationError):
                await anext(aiter(client.subscribe(SubscribeToTaskRequest(id=task_id))))

    run(ask())
    assert len(stayed) >= 3, "in the middle of two steps and a call"
    assert first.answer == "Read: seen"
    assert first.states[-1] == TASK_STATE_COMPLETED
    wait_until(lambda: len(gateway.gateway.streams) == 0, "its places are free")


def one_part(task: Task) -> Task:
    """The answer's parts as one, as the gateway has it."""
    found = Task()
    found.CopyFrom(task)
    for artifact in found.artifacts:
        text = "".join(part.text for part in artifact.parts)
        del artifact.parts[1:]
        artifact.parts[0].text = text
    return found


def test_a_task_asks_for_an_approval_and_is_answered(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with agent(gateway) as client:
            reader = Reader()
            async for response in client.send_message(message("save")):
                reader.take(response)  # it ends by itself: it is the client's turn
            assert reader.states[-1] == TASK_STATE_INPUT_REQUIRED
            asked = asked_of(reader.task)
            assert (asked["tool"], asked["wants"], asked["arguments"]) == ("save", "approval", {})
            got = await client.get_task(GetTaskRequest(id=reader.task.id))
            assert got == reader.task

            def answer(**decision: Any) -> SendMessageRequest:
                told = {"call": asked["call"], **decision}
                return message(told, message_id=str(decision), task_id=reader.task.id)

            for wrong in (
                answer(decision="perhaps"),
                answer(decision="approve", call="other-c1-0"),
                message(message_id="m-3", task_id=reader.task.id, context_id="another"),
                message(" ", message_id="m-4", task_id=reader.task.id),
            ):
                with pytest.raises(InvalidParamsError):
                    await run_out(client, wrong)
            with pytest.raises(UnsupportedOperationError):
                await run_out(client, answer(decision="approve", args_hash="of others"))
            with pytest.raises(UnsupportedOperationError):
                await run_out(client, answer(decision="approve", args_hash="of others", arguments={"name": "c"}))
            assert await client.get_task(GetTaskRequest(id=reader.task.id)) == got, "nothing has changed"
            approved = answer(decision="approve", args_hash=asked["args_hash"], arguments={"name": "b"})
            async for response in client.send_message(approved):
                reader.take(response)
            assert reader.answer.endswith("saved b")
            assert (await run_out(client, approved)).task == one_part(reader.task), "twice is once"

    with pumping(pump):
        run(ask())
    (approval,) = pump.client.approvals(state="all")
    assert (approval.state, approval.edited, approval.decided_by) == ("approved", True, "")


async def run_out(client: Client, request: SendMessageRequest) -> Reader:
    reader = Reader()
    async for response in client.send_message(request):
        reader.take(response)
    return reader


def test_a_text_to_a_task_is_read_at_its_next_step_and_decides_nothing(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            task = await sent(client, message("save"))
            steer = message("yes, and 😀", message_id="m-2", task_id=task.id)
            steered, again = await sent(client, steer), await sent(client, steer)
            assert again == steered
            assert steered.status.state == TASK_STATE_INPUT_REQUIRED, "words are no decision"
            call = asked_of(steered)["call"]
            denied = message({"call": call, "decision": "deny", "reason": "no"}, message_id="m-3", task_id=task.id)
            ended = await sent(client, denied)
            assert answer_of(ended).count("yes, and 😀") == 1
            with pytest.raises(UnsupportedOperationError):
                await sent(client, message("more", message_id="m-4", task_id=task.id))

    with pumping(pump):
        run(ask())


def test_a_call_of_the_clients_own_tool_is_given_its_result(gateway: GatewayThread, pump: Pump) -> None:
    """A2A has no words to bring tools; a turn that got them elsewhere is a task here."""
    handle = pump.submit("s1", "ring", client_tools=[{"name": "ring"}])

    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            task = await client.get_task(GetTaskRequest(id=handle.turn_id))
            assert task.status.state == TASK_STATE_INPUT_REQUIRED
            asked = asked_of(task)
            assert asked == {"call": f"{task.id}-c1-0", "wants": "result", "tool": "ring", "arguments": {}}
            answer = message({"call": asked["call"], "result": {"n": 3, "half": 0.5}}, task_id=task.id)
            told = answer_of(await sent(client, answer))
            assert json.loads(told.removeprefix("Read: ")) == {"n": 3, "half": 0.5}
            assert "3.0" not in told
            assert answer_of(await sent(client, answer)), "the same message again does nothing more"

    pump.drain()
    with pumping(pump):
        run(ask())


def test_a_task_is_cancelled_once(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with agent(gateway) as client:
            asking = (await run_out(client, message("save"))).task
            cancelled = await client.cancel_task(CancelTaskRequest(id=asking.id))
            assert cancelled.status.state == TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=asking.id))

    with pumping(pump):
        run(ask())


def test_another_tenants_task_is_as_one_of_nobody(gateways: Gateways, pump: Pump) -> None:
    theirs, mine = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    gateway = reached(gateways)

    async def begin() -> Task:
        async with agent(gateway, theirs) as client:
            task = (await run_out(client, message("save"))).task
            assert task.context_id.startswith("acme:"), "the context it is given is the tenant's own"
            return task

    async def refused(task_id: str, context_id: str, call: str) -> list[str]:
        told: list[str] = []
        async with agent(gateway, mine) as streams, agent(gateway, mine, streaming=False) as client:
            decision = {"call": call, "decision": "approve"}
            for ask in (
                lambda: client.get_task(GetTaskRequest(id=task_id)),
                lambda: client.cancel_task(CancelTaskRequest(id=task_id)),
                lambda: sent(client, message("x", task_id=task_id)),
                lambda: sent(client, message(decision, message_id="m-2", task_id=task_id)),
                lambda: sent(client, message("x", message_id="m-3", context_id=context_id)),
                lambda: anext(aiter(streams.subscribe(SubscribeToTaskRequest(id=task_id)))),
            ):
                with pytest.raises(TaskNotFoundError) as failure:
                    await ask()
                told.append(str(failure.value))
            own = (await sent(client, message("save"))).context_id
            assert own.startswith("evil:"), "the same message id is another tenant's own task"
        return told

    with pumping(pump):
        task = run(begin())
        before = pump.client.handle(task.id).snapshot()
        assert before is not None
        of_theirs = run(refused(task.id, task.context_id, asked_of(task)["call"]))
        assert run(refused("nobody", "acme:nobody", "nobody-c1-0")) == of_theirs
        after = pump.client.handle(task.id).snapshot()
    assert after is not None
    assert (after.state, after.cancel_requested) == (before.state, False)


def test_a_token_needs_the_verb_of_what_is_asked(gateways: Gateways, pump: Pump) -> None:
    headers = token(pump, "reader", "*", Verb.READ)
    gateway = reached(gateways)
    asking = pump.submit("s1", "save")
    pump.drain()
    call = {"call": f"{asking.turn_id}-c1-0", "decision": "approve"}

    async def ask() -> None:
        async with agent(gateway, headers, streaming=False) as client:
            assert (await client.get_task(GetTaskRequest(id=asking.turn_id))).id == asking.turn_id
            for request in (
                message("look"),
                message("x", task_id=asking.turn_id),
                message(call, task_id=asking.turn_id),
            ):
                with pytest.raises(A2AClientError, match="403"):
                    await sent(client, request)
            with pytest.raises(A2AClientError, match="403"):
                await client.cancel_task(CancelTaskRequest(id=asking.turn_id))

    run(ask())
    assert gateway.http.post("/a2a/gate", json={}).status_code == 401


def test_a_caller_that_asks_too_often_or_streams_too_much_is_told_when_to_come_again(
    gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_rates, "BURST_S", 1000.0)
    gateway = reached(gateways, requests_s=0.002, streams_a_caller=1)  # two requests at once

    async def ask() -> None:
        async with agent(gateway) as client:
            stream = aiter(client.send_message(message("look")))
            task = (await anext(stream)).task
            with pytest.raises(A2AClientError, match="429"):
                await anext(aiter(client.subscribe(SubscribeToTaskRequest(id=task.id))))
            with pytest.raises(A2AClientError, match="429"):
                await client.get_task(GetTaskRequest(id=task.id))
            await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    run(ask())
    answer = gateway.http.post("/a2a/gate", json={})
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)


def test_what_is_not_spoken_is_refused_by_its_name(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with agent(gateway, streaming=False) as client:
            pushed = message("look")
            pushed.configuration.task_push_notification_config.url = "https://example.org"
            filed = message("look")
            filed.message.parts.append(Part(url="https://example.org/a.png"))
            for refused, kind in (
                (lambda: sent(client, pushed), PushNotificationNotSupportedError),
                (
                    lambda: client.create_task_push_notification_config(TaskPushNotificationConfig(task_id="t")),
                    PushNotificationNotSupportedError,
                ),
                (lambda: client.list_tasks(ListTasksRequest()), UnsupportedOperationError),
                (lambda: sent(client, filed), ContentTypeNotSupportedError),
                (lambda: sent(client, message(" ")), InvalidParamsError),
                (lambda: sent(client, message()), InvalidParamsError),
                (lambda: sent(client, message("x", message_id="")), InvalidParamsError),
                (lambda: sent(client, message("x", context_id="a b")), InvalidParamsError),
                (lambda: client.get_task(GetTaskRequest(id="a b")), TaskNotFoundError),
                (lambda: client.get_task(GetTaskRequest(id="nobody", history_length=-1)), InvalidParamsError),
            ):
                with pytest.raises(kind):
                    await refused()

    run(ask())
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "nobody"}}
    version = {"A2A-Version": "1.0"}
    typed = {"Content-Type": "application/json", **version}
    for body, code in (
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (json.dumps({**rpc, "jsonrpc": "1.0"}).encode(), -32600),
        (json.dumps({**rpc, "id": True}).encode(), -32600),
        (json.dumps({**rpc, "method": "Nothing"}).encode(), -32601),
        (json.dumps({**rpc, "params": [1]}).encode(), -32602),
        (json.dumps({**rpc, "params": {"id": "\ud800"}}).encode(), -32602),
        (json.dumps(rpc).encode(), -32001),
    ):
        answer = gateway.http.post("/a2a/gate", content=body, headers=typed)
        assert (answer.status_code, answer.json()["error"]["code"]) == (200, code), body[:60]
    plain = gateway.http.post("/a2a/gate", content=json.dumps(rpc), headers=version)
    assert plain.json()["error"]["code"] == -32600, "a form of another site's page could send it"
    old = gateway.http.post("/a2a/gate", json=rpc)
    assert old.json()["error"]["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert gateway.http.post("/a2a/other", json=rpc, headers=version).status_code == 404
    assert pump.client.session("s1").history() == ()


def test_each_of_several_brains_is_an_agent_of_its_own(gateways: Gateways, pump: Pump) -> None:
    other = Brain("other", "offline:rules", description="Tells stories.")
    port = free_port()
    address = {"port": port, "a2a": f"http://127.0.0.1:{port}"}
    with GatewayThread(pump.settings, [pump.wiring.brains.default, other], **address) as gateway:

        async def ask() -> None:
            async with httpx.AsyncClient(timeout=30, verify=False) as http:
                resolver = A2ACardResolver(http, f"{gateway.url}/a2a/other")
                card = await resolver.get_agent_card()
                assert (card.name, card.description) == ("other", "Tells stories.")
                config = ClientConfig(httpx_client=http, streaming=False, polling=True)
                task = await sent(ClientFactory(config).create(card), message("look"))
                asked = pump.wiring.store.turns.request(task.id)
                assert asked is not None
                assert asked.brain == "other"
            async with agent(gateway) as client:
                card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
                assert card.name == "gate", "the first is the default"

        run(ask())


def test_it_is_off_unless_it_is_told_where_it_is_reached(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = gateways()
    for path in ("/.well-known/agent-card.json", "/a2a/gate/.well-known/agent-card.json"):
        assert gateway.http.get(path).status_code == 404
    assert gateway.http.post("/a2a/gate", json={}).status_code == 404
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(AssertionError, match=r"pip install 'brainq\[http,a2a\]'"):
        GatewayThread(pump.settings, Brain("b", "offline:rules"), a2a="https://agents.example").start()


def test_its_address_is_one() -> None:
    for wrong in ("agents.example", "https://agents.example/", "ftp://agents.example"):
        with pytest.raises(SetupError, match="HTTP_A2A"):
            load_settings(http_a2a=wrong)


def test_the_pages_example_runs(gateway: GatewayThread, pump: Pump) -> None:
    page = (Path(__file__).parents[3] / "docs/wires/a2a.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)

    def decide(asked: dict[str, Any]) -> bool:
        return asked["tool"] == "save"

    with pumping(pump):
        said = run(names["restock"](gateway.url, "save", decide))
    assert said == "Read: saved a"


def test_the_page_has_every_method() -> None:
    page = (Path(__file__).parents[3] / "docs/wires/a2a.md").read_text()
    assert [name for name in METHODS if f"`{name}`" not in page and "PushNotification" not in name] == []
