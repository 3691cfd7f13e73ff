"""brainq as an MCP server, by the SDK's own client against a real gateway: a tool's call is a turn."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import BlobResourceContents, CallToolResult, ResourceLink

from brainq import Brain, Effect, File, ScriptedProvider
from brainq.app.access import Tokens, Verb
from brainq.contrib.mcp_server import server
from brainq.contrib.mcp_server.requests import ON_DISCONNECT
from brainq.contrib.mcp_server.turn_report import PROBLEM_META
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.mcp.calls import IDEMPOTENCY_KEY
from brainq.runtime.observe import threads
from tests.integration.gateway.test_door import token
from tests.support.blobs import png
from tests.support.gateways import GatewayThread
from tests.support.mcp_clients import AGES, Age, User, over_http, run, told, words
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.pumping import pumping
from tests.support.wait import wait_until

Gateways = Callable[..., GatewayThread]
ages = pytest.mark.parametrize("age", AGES)
new_or_old = pytest.mark.parametrize("age", ["auto", pytest.param("legacy", marks=pytest.mark.full)])
"""Where both ages go the same way."""
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


async def eventually(so: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(wait_until, so, what)


async def parked(pump: Pump) -> None:
    await eventually(lambda: len(pump.client.turns(state="parked")) == 1, "the turn is parked")


@new_or_old
def test_a_brain_is_a_tool_that_answers_and_tells_what_it_does(
    gateway: GatewayThread, pump: Pump, age: Age, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    async def ask() -> None:
        async with over_http(gateway.url, age=age) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            answer = told(await client.call_tool("gate", {"message": "look"}, progress_callback=hear))
            assert (answer["state"], answer["text"]) == ("completed", "Read: seen")
            Draft202012Validator(tools["gate"].output_schema or {}).validate(answer)
            on = {"message": "more", "session": answer["session"]}
            again = told(await client.call_tool("gate", on))
            assert (again["session"], again["text"]) == (answer["session"], "Read: more")
            turns = told(await client.call_tool("list", {"session": answer["session"]}))["turns"]
            assert [turn["turn_id"] for turn in turns] == [again["turn_id"], answer["turn_id"]]
            done = await client.call_tool("result", {"turn_id": answer["turn_id"]})
            assert told(done)["text"] == answer["text"]
            assert json.loads(words(done)) == done.structured_content
            with monkeypatch.context() as short:
                short.setattr(server, "DEFAULT_PAGE", 1)
                read = await client.read_resource(f"brainq://turns/{answer['turn_id']}/transcript")
            assert "look" in str(read.contents[0])
            assert "seen" in str(read.contents[0])
            listed = await client.list_resources()
            assert {str(one.uri) for one in listed.resources} == {f"brainq://turns/{turn['turn_id']}" for turn in turns}

    with pumping(pump):
        run(ask())
    numbers = [done for done, _ in heard]
    assert numbers == sorted(set(numbers)), "each is further than the one before"
    said = [message for _, message in heard]
    assert [at for at in said if at in ("look runs", "look: completed", "Read: seen")] == [
        "look runs",
        "look: completed",
        "Read: seen",
    ]
    assert len(gateway.gateway.streams) == 0


def test_what_is_listed_is_what_the_caller_may(gateway: GatewayThread, pump: Pump) -> None:
    asks, looks = {"gate"}, {"result", "watch", "list", "approvals"}
    wanted = {
        (Verb.READ,): looks,
        (Verb.READ, Verb.SUBMIT): looks | asks | {"submit"},
        (Verb.READ, Verb.STEER): looks | {"cancel"},
        (Verb.READ, Verb.SUBMIT, Verb.STEER): looks | asks | {"submit", "cancel", "steer"},
        (Verb.READ, Verb.DECIDE): looks | {"approve", "deny"},
    }
    headers = {verbs: token(pump, " ".join(verbs), "acme:", *verbs) for verbs in wanted}
    configures = token(pump, "configures", "acme:", Verb.READ, Verb.SUBMIT, Verb.CONFIGURE)

    async def ask() -> None:
        for verbs, names in wanted.items():
            async with over_http(gateway.url, headers[verbs]) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert set(tools) == names, verbs
                for absent in ("gate", "submit", "approve", "cancel"):
                    if absent not in names:
                        with pytest.raises(MCPError, match="no such tool") as missing:
                            await client.call_tool(absent, {"turn_id": "x" * 26})
                        with pytest.raises(MCPError) as nothing:
                            await client.call_tool("nothing", {"turn_id": "x" * 26})
                        assert missing.value.error == nothing.value.error
                if "submit" in names:
                    assert "model" not in tools["submit"].input_schema["properties"]
                    refused = await client.call_tool("submit", {"message": "x", "model": "openai:gpt-5"})
                    assert refused.is_error
                    assert "configure" in words(refused)
        async with over_http(gateway.url, configures) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "model" in tools["submit"].input_schema["properties"]

    run(ask())
    assert not pump.client.turns()


def test_a_file_of_a_tool_is_a_link_that_can_be_read(pumps: Callable[..., Pump]) -> None:
    model = ScriptedProvider([calls(("draw", {}), ("draw", {})), says("Here it is.")])
    made = Brain("gate", model)

    @made.tool(effect=Effect.READ_ONLY)
    def draw() -> File:  # pyright: ignore[reportUnusedFunction]
        "Draw."
        return File(png(), name="plan.png")

    pump = pumps(made)

    async def ask(url: str) -> None:
        async with over_http(url) as client:
            done = await client.call_tool("gate", {"message": "draw"})
            (file,) = told(done)["files"]
            assert (file["name"], file["media_type"], file["tool"]) == ("plan.png", "image/png", "draw")
            link = done.content[-1]
            assert isinstance(link, ResourceLink)
            assert (str(link.uri), link.mime_type, link.size) == (file["uri"], "image/png", len(png()))
            (read,) = (await client.read_resource(file["uri"])).contents
            assert isinstance(read, BlobResourceContents)
            assert (read.mime_type, base64.b64decode(read.blob)) == ("image/png", png())
            with pytest.raises(MCPError, match="this caller has no object"):
                await client.read_resource(file["uri"][:-64] + "0" * 64)

    with GatewayThread(pump.settings, pump.wiring.brains) as gateway, pumping(pump):
        run(ask(gateway.url))


@pytest.mark.full
def test_annotations_say_what_the_brains_tools_may_do(pumps: Callable[..., Pump]) -> None:
    def brain(name: str, *effects: Effect) -> Brain:
        made = Brain(name, ScriptedProvider([says("")]), description=f"Is {name}.")
        for number, effect in enumerate(effects):

            def tool() -> str:
                "Does."
                return ""

            tool.__name__ = f"t{number}"
            made.tool(effect=effect)(tool)
        return made

    brains = [
        brain("plain"),
        brain("local", Effect.LOCAL_WRITE),
        brain("reads", Effect.READ_ONLY),
        brain("net", Effect.NETWORK, Effect.LOCAL_WRITE),
        brain("wild", Effect.DESTRUCTIVE),
        brain("submit"),
        brain("a.b"),
        brain("a_b"),
        brain("x" * 100),
    ]
    pump = pumps(brains)

    async def ask(url: str) -> dict[str, Any]:
        async with over_http(url) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    with GatewayThread(pump.settings, pump.wiring.brains) as gateway:
        tools = run(ask(gateway.url))
    said = {
        name: (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        for name, hints in ((name, tool.annotations) for name, tool in tools.items())
    }
    assert said["plain"] == said["local"] == (False, False, False, False)
    assert said["reads"] == said["net"] == (False, False, False, True)
    assert said["wild"] == said["submit"] == said["steer"] == (False, True, False, True)
    assert said["approve"] == (False, True, True, True), "what it lets run may do anything"
    assert said["cancel"] == (False, True, True, False)
    assert said["deny"] == (False, False, True, False)
    assert {said[name] for name in ("result", "watch", "list", "approvals")} == {(True, False, True, False)}
    assert tools["plain"].description == "Is plain."
    assert {"ask_submit", "a_b"} < set(tools), "a brain that is named as a verb has another tool"
    assert len(tools) == len(brains) + 9
    assert all(len(name) <= 64 for name in tools)


@pytest.mark.full
def test_an_answer_that_has_a_schema_is_described_by_it(pumps: Callable[..., Pump]) -> None:
    schema = {
        "type": "object",
        "properties": {"count": {"$ref": "#/$defs/Count"}},
        "required": ["count"],
        "$defs": {"Count": {"type": "integer"}},
    }
    brain = Brain("counts", ScriptedProvider([says('{"count": 3}')]), output_schema=schema)
    pump = pumps(brain)

    async def ask(url: str) -> None:
        async with over_http(url) as client:
            (tool,) = [one for one in (await client.list_tools()).tools if one.name == "counts"]
            answer = told(await client.call_tool("counts", {"message": "count"}))
            assert answer["parsed"] == {"count": 3}
            validator = Draft202012Validator(tool.output_schema or {})
            validator.validate(answer)
            assert not validator.is_valid({**answer, "parsed": {"count": "three"}})

    with GatewayThread(pump.settings, pump.wiring.brains) as gateway, pumping(pump):
        run(ask(gateway.url))


@ages
def test_a_call_that_is_cancelled_ends_its_turn(gateway: GatewayThread, pump: Pump, age: Age) -> None:
    async def ask() -> str:
        async with over_http(gateway.url, age=age) as client:
            call = asyncio.create_task(client.call_tool("gate", {"message": "order"}))
            await parked(pump)
            (turn,) = pump.client.turns()
            call.cancel()
            await asyncio.wait({call})
            await eventually(lambda: pump.client.turns()[0].ending == "cancelled", "the turn ends")
            return turn.turn_id

    with pumping(pump):
        turn_id = run(ask())
    assert pump.client.handle(turn_id).result(timeout_s=0).ending == "cancelled"
    wait_until(lambda: len(gateway.gateway.streams) == 0, "the call has left")


@pytest.mark.full
@pytest.mark.parametrize("reason", ["continue", "no verb"])
def test_a_connection_that_ends_cancels_nothing_where_it_may_not(
    gateway: GatewayThread, pump: Pump, reason: str
) -> None:
    verbs = [Verb.READ, Verb.SUBMIT, *([Verb.STEER] if reason == "continue" else [])]
    headers = token(pump, "reader", "*", *verbs)
    meta: Any = {ON_DISCONNECT: "continue", IDEMPOTENCY_KEY: "k"} if reason == "continue" else None

    async def ask() -> None:
        async with over_http(gateway.url, headers) as client:
            call = asyncio.create_task(client.call_tool("gate", {"message": "order"}, meta=meta))
            await parked(pump)
            call.cancel()
            await asyncio.wait({call})
            await eventually(lambda: len(gateway.gateway.streams) == 0, "the call has left")
            if meta:
                again = {"message": "order", "wait_s": 0}
                answer = told(await client.call_tool("gate", again, meta=meta))
                assert answer["state"] == "parked"

    with pumping(pump):
        run(ask())
    (turn,) = pump.client.turns()
    assert turn.state == "parked"


@new_or_old
def test_a_call_that_is_sent_again_is_the_same_turn(gateways: Gateways, pump: Pump, age: Age) -> None:
    first, second = gateways(), gateways()
    for gateway in (first, second):
        gateway.http.get("/v1/brains")  # FastAPI builds its routes at the first request: not in two threads at once
    meta: Any = {IDEMPOTENCY_KEY: "order 17, once"}

    async def ask(gateway: GatewayThread, **said: Any) -> CallToolResult:
        async with over_http(gateway.url, age=age) as client:
            return await client.call_tool("gate", {"message": "look", **said}, meta=meta)

    async def both() -> tuple[CallToolResult, ...]:
        return await asyncio.gather(ask(first), ask(second))

    with pumping(pump):
        one, two = (told(found) for found in run(both()))
        later = told(run(ask(first)))
        other = run(ask(first, message="something else"))
    assert one["turn_id"] == two["turn_id"] == later["turn_id"]
    assert (other.is_error, (other.meta or {})[PROBLEM_META]["type"]) == (True, "urn:brainq:problem:submit-conflict")
    assert len(pump.client.turns()) == 1
    forget(pump)
    assert told(run(ask(first)))["text"] == "Read: seen", "from SQL, once Redis has let it go"


def test_an_older_client_s_cancel_reaches_the_turn_at_any_gateway(gateways: Gateways, pump: Pump) -> None:
    first, second = gateways(), gateways()
    opened = first.http.post("/mcp", headers=HEADERS, json=rpc("initialize", INITIALIZE))
    headers = {**HEADERS, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    assert opened.headers["mcp-session-id"] not in opened.text
    call = rpc("tools/call", {"name": "gate", "arguments": {"message": "order", "wait_s": 0}}, "call-1")
    assert first.http.post("/mcp", headers=headers, json=call).status_code == 200
    pump.drain()
    again = first.http.post("/mcp", headers=headers, json=call)
    (turn,) = pump.client.turns()
    assert turn.turn_id in again.text, "a request's id is used once in a session"
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call-1"}}
    elsewhere = {**headers, "Mcp-Session-Id": "another"}
    for sent in (elsewhere, headers):
        assert second.http.post("/mcp", headers=sent, json=cancel).status_code == 202
    with pumping(pump):
        wait_until(lambda: pump.client.turns()[0].ending == "cancelled", "the turn ends")


def test_a_turn_that_is_not_done_in_time_is_watched(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with over_http(gateway.url) as client:
            soon = told(await client.call_tool("gate", {"message": "look", "wait_s": 0.05}))
            assert (soon["state"], "result" in soon["next"]) == ("active", True)
            turn_id, kinds, behind = soon["turn_id"], list[str](), 0
            while True:
                given = {"turn_id": turn_id, "after": behind, "wait_s": 0.2, "limit": 3}
                seen = told(await client.call_tool("watch", given))
                kinds += [event["kind"] for event in seen["events"]]
                assert [event["seq"] for event in seen["events"]] == [
                    behind + number + 1 for number in range(len(seen["events"]))
                ]
                behind = seen["next"]
                if seen["is_over"]:
                    break
                await asyncio.to_thread(pump.drain)
            assert (kinds[-1], kinds.count("result")) == ("result", 1)
            over = told(await client.call_tool("watch", {"turn_id": turn_id, "after": behind, "wait_s": 30}))
            assert (over["events"], over["is_over"]) == ([], True)
            answer = told(await client.call_tool("result", {"turn_id": turn_id, "wait_s": 5}))
            assert answer["text"] == "Read: seen"

    run(ask())


@new_or_old
def test_a_turn_that_waits_for_an_approval_says_so_and_is_decided_by_tools(
    gateway: GatewayThread, pump: Pump, age: Age
) -> None:
    async def ask() -> None:
        async with over_http(gateway.url, age=age) as client:
            waits = told(await client.call_tool("gate", {"message": "save"}))
            (asked,) = waits["waits_for"]
            assert (waits["state"], asked["tool"], asked["arguments"]) == ("parked", "save", {})
            assert "approve" in waits["next"]
            (pending,) = told(await client.call_tool("approvals", {}))["approvals"]
            assert pending["id"] == asked["approval_id"]
            wrong = {"approval_id": asked["approval_id"], "args_hash": "other"}
            assert (await client.call_tool("approve", wrong)).is_error
            given = {"approval_id": asked["approval_id"], "args_hash": asked["args_hash"]}
            edited = {**given, "arguments": {"name": "b"}}
            assert told(await client.call_tool("approve", edited))["state"] == "approved"
            answer = told(await client.call_tool("result", {"turn_id": waits["turn_id"], "wait_s": 30}))
            assert answer["text"].endswith("saved b")
            late = await client.call_tool("deny", {"approval_id": asked["approval_id"]})
            assert late.is_error

    with pumping(pump):
        run(ask())


def test_the_client_s_user_is_asked_where_the_client_can(gateway: GatewayThread, pump: Pump) -> None:
    approves, denies, goes = User("accept"), User("accept", "deny"), User("cancel")

    async def ask(user: User) -> dict[str, Any]:
        async with over_http(gateway.url, user=user) as client:
            return told(await client.call_tool("gate", {"message": "save"}))

    with pumping(pump):
        saved, refused, open_ = run(ask(approves)), run(ask(denies)), run(ask(goes))
    assert saved["text"] == "Read: saved a"
    assert "not today" in refused["text"]
    assert (open_["state"], len(open_["waits_for"])) == ("parked", 1)
    for user in (approves, denies, goes):
        (asked,) = user.asked
        assert asked.startswith("save (local_write) asks to run.")
    assert len(pump.client.turns()) == 3


def test_who_may_not_decide_is_not_asked_and_what_a_client_brings_back_is_not_believed(
    gateway: GatewayThread, pump: Pump
) -> None:
    reads = token(pump, "reads", "acme:", Verb.READ, Verb.SUBMIT)
    decides = token(pump, "decides", "evil:")
    user = User("accept")

    async def ask() -> None:
        async with over_http(gateway.url, reads, user=user) as client:
            waits = told(await client.call_tool("gate", {"message": "save"}))
            assert not user.asked
        approval = waits["waits_for"][0]["approval_id"]
        for turn_id in (waits["turn_id"], "0" * 26):
            state = json.dumps({"turn_id": turn_id, "seq": 0, "asks": {f"{turn_id}-c1-0": "x"}})
            async with over_http(gateway.url, decides, user=user) as client:
                told_ = await client.call_tool("gate", {"message": "save"}, request_state=state)
                assert words(told_) == words(await client.call_tool("result", {"turn_id": "0" * 26}))
        own = json.dumps({"turn_id": "0" * 26, "seq": 0, "asks": {approval: "x"}})
        for wrong in (own, "no json", "[]"):
            async with over_http(gateway.url, decides) as client:
                refused = await client.call_tool("gate", {"message": "save"}, request_state=wrong)
                assert refused.is_error
        assert pump.client.approval(approval).state == "pending"

    with pumping(pump):
        run(ask())


@pytest.mark.full
def test_a_turn_is_steered_and_cancelled_by_tools(gateway: GatewayThread, pump: Pump) -> None:
    async def ask() -> None:
        async with over_http(gateway.url) as client:
            begun = told(await client.call_tool("submit", {"message": "order", "metadata": {"n": 1}}))
            turn = {"turn_id": begun["turn_id"]}
            steered = {**turn, "text": "hurry", "client_message_id": "m1"}
            receipt = told(await client.call_tool("steer", steered))
            assert told(await client.call_tool("steer", steered)) == receipt
            busy = {"message": "x", "session": begun["session"], "on_busy": "reject"}
            refused = await client.call_tool("submit", busy)
            assert (refused.is_error, (refused.meta or {})[PROBLEM_META]["live_turn_id"]) == (True, begun["turn_id"])
            assert told(await client.call_tool("cancel", turn))["cancelled"] in ("requested", "cancelled")
            ended = await client.call_tool("result", {**turn, "wait_s": 30})
            assert ended.is_error
            assert (ended.structured_content or {})["state"] == "cancelled"
            assert told(await client.call_tool("cancel", turn)) == {"cancelled": "ended"}

    with pumping(pump):
        run(ask())


def test_bad_input_is_refused_by_the_name_of_its_field_and_begins_nothing(gateway: GatewayThread, pump: Pump) -> None:
    wrong: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("gate", {}, {}, "message"),
        ("gate", {"message": "x", "session": "no spaces"}, {}, "session"),
        ("gate", {"message": "x", "wait_s": "5"}, {}, "wait_s"),
        ("gate", {"message": "x", "other": 1}, {}, "other"),
        ("gate", {"message": "  "}, {}, "message"),
        ("gate", {"message": "x"}, {IDEMPOTENCY_KEY: ""}, "idempotency-key"),
        ("gate", {"message": "x"}, {IDEMPOTENCY_KEY: 3}, "idempotency-key"),
        ("submit", {"message": "x", "brain": "other"}, {}, "brain"),
        ("submit", {"message": "x", "output_schema": {"type": "nothing"}}, {}, "output_schema"),
        ("watch", {"turn_id": "../x"}, {}, "turn_id"),
        ("approve", {"approval_id": "c1"}, {}, "approval_id"),
    ]

    async def ask() -> None:
        async with over_http(gateway.url) as client:
            for name, arguments, meta, field in wrong:
                given: Any = meta
                refused = await client.call_tool(name, arguments, meta=given)
                assert refused.is_error, name
                assert field in words(refused)
            with pytest.raises(MCPError, match="this caller has no object"):
                await client.read_resource("brainq://turns/" + "0" * 26)
            with pytest.raises(MCPError, match="this caller has no object"):
                await client.read_resource("file:///etc/passwd")

    run(ask())
    assert not pump.client.turns()
    assert len(gateway.gateway.streams) == 0


def rpc(method: str, params: Any, request_id: str = "1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_the_door_and_the_limits_are_every_route_s(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    gateway = gateways(body_bytes=2_000)
    ask = gateway.http.post
    opened = rpc("initialize", INITIALIZE)
    assert ask("/mcp", headers=HEADERS, json=opened).status_code == 200
    assert ask("/mcp", headers={**HEADERS, "Host": "evil.example"}, json=opened).status_code == 421
    assert ask("/mcp", headers={**HEADERS, "Origin": "https://evil.example"}, json=opened).status_code == 403
    form = {**HEADERS, "Content-Type": "text/plain"}
    assert ask("/mcp", headers=form, content=json.dumps(opened)).status_code == 400
    large = rpc("tools/call", {"name": "gate", "arguments": {"message": "x" * 3_000}})
    assert ask("/mcp", headers=HEADERS, json=large).status_code == 413
    for method in ("GET", "DELETE"):
        assert gateway.http.request(method, "/mcp", headers=HEADERS).status_code == 405
    assert ask("/mcp", headers=HEADERS, content=b"\xff{").status_code == 400
    full = gateways(streams=1)
    call = rpc("tools/call", {"name": "gate", "arguments": {"message": "sk-secret words"}})
    with full.gateway.streams.enter("somebody"):
        refused = full.http.post("/mcp", headers=HEADERS, json=call)
    assert "isError" in refused.text
    assert not pump.client.turns(), "what nobody can wait for is not begun"
    off = gateways(mcp=False)
    told_ = off.http.post("/mcp", headers=HEADERS, json=opened)
    assert (told_.status_code, "BRAINQ_HTTP_MCP" in told_.json()["detail"]) == (404, True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    told_ = gateway.http.post("/mcp", headers=HEADERS, json=opened)
    assert (told_.status_code, "brainq[mcp]" in told_.json()["detail"]) == (404, True)
    assert "sk-secret" not in caplog.text


def test_a_gateway_that_stops_lets_its_calls_go_and_another_one_goes_on(gateways: Gateways, pump: Pump) -> None:
    first, second = gateways(), gateways()
    meta: Any = {IDEMPOTENCY_KEY: "k"}

    async def ask() -> None:
        async with over_http(first.url) as client:
            await client.list_tools()  # which it would do once it has the answer
            call = asyncio.create_task(client.call_tool("gate", {"message": "order"}, meta=meta))
            await parked(pump)
            first.stop()
            goes_on = told(await call)
            assert (goes_on["state"], "result" in goes_on["next"]) == ("parked", True)
        await asyncio.to_thread(first.stopped)
        async with over_http(second.url) as client:
            again = told(await client.call_tool("gate", {"message": "order", "wait_s": 0}, meta=meta))
            assert again["turn_id"] == goes_on["turn_id"]
            assert again["state"] == "parked"

    with pumping(pump):
        run(ask())


@pytest.mark.full
def test_a_token_that_is_revoked_ends_what_it_waits_for(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokens.__init__, "__defaults__", (0.05, 0.0))
    headers = token(pump, "web", "*")
    gateway = gateways(heartbeat_s=0.05)

    async def revoked() -> CallToolResult:
        async with over_http(gateway.url, headers) as client:
            call = asyncio.create_task(client.call_tool("gate", {"message": "order"}))
            await parked(pump)
            tokens = Tokens(pump.wiring.store)
            tokens.revoke(tokens.list()[0].token_id)
            return await call

    with pumping(pump):
        refused = run(revoked())
    assert refused.is_error
    assert "no longer valid" in words(refused)


@pytest.fixture
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FIRST_BACKOFF_S", 0.01)


@pytest.mark.usefixtures("quick_restarts")
def test_a_server_that_does_not_start_is_said_and_started_again(
    gateways: Gateways, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gateway, fails = gateways(), [MemoryError(), SystemExit(3), OSError("no descriptors")]
    runs = StreamableHTTPSessionManager.run

    def run_(manager: StreamableHTTPSessionManager) -> Any:
        if fails:
            raise fails.pop(0)
        return runs(manager)

    monkeypatch.setattr(StreamableHTTPSessionManager, "run", run_)
    first = gateway.http.post("/mcp", headers=HEADERS, json=rpc("initialize", INITIALIZE))
    assert first.status_code == 503
    wait_until(lambda: not fails, "it is started again by itself")
    wait_until(
        lambda: gateway.http.post("/mcp", headers=HEADERS, json=rpc("initialize", INITIALIZE)).status_code == 200,
        "it runs",
    )
    assert "thread brainq-mcp failed and will be tried again why=MemoryError" in caplog.text


@pytest.mark.usefixtures("quick_restarts")
def test_a_server_whose_tasks_break_is_replaced(gateways: Gateways) -> None:
    gateway = gateways()
    ask = partial(gateway.http.post, "/mcp", headers=HEADERS, json=rpc("initialize", INITIALIZE))
    assert ask().status_code == 200
    assert gateway.server is not None
    endpoint: Any = cast("Any", gateway.server.config.app).state.wires["mcp_server"]
    broken = endpoint._manager

    async def breaks() -> None:
        raise OSError("a task of the group")

    async def break_group() -> None:
        broken._task_group.start_soon(breaks)

    asyncio.run_coroutine_threadsafe(break_group(), endpoint._running._task.get_loop()).result(60)
    wait_until(lambda: endpoint._manager is not broken, "it is noticed")
    wait_until(lambda: ask().status_code == 200, "another one answers")


@pytest.mark.usefixtures("quick_restarts")
def test_readiness_names_a_server_that_fails_again_and_again(
    gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = gateways()

    def run_(manager: StreamableHTTPSessionManager) -> Any:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(StreamableHTTPSessionManager, "run", run_)
        gateway.http.post("/mcp", headers=HEADERS, json=rpc("initialize", INITIALIZE))
        wait_until(lambda: gateway.http.get("/readyz").status_code == 503, "it is not ready")
        assert any(problem.startswith("thread brainq-mcp has ended") for problem in threads.thread_problems())
    monkeypatch.setattr(threads, "STEADY_S", 0.0)
    wait_until(lambda: gateway.http.get("/readyz").status_code == 200, "it is ready again")
