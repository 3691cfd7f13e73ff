"""Everything that a front does, asked with every verb but one, and with just the verbs that it needs.

What is asked for exists, and is the caller's own: nothing but the verb is in the way. The rows are compared with the
fronts' own lists, so that what is added to one of them has to be added here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import httpx
import pytest

from brainq.app.access import Verb
from brainq.contracts.turn import CONFIGURE_OPTIONS
from brainq.contrib.a2a import requests as messages
from brainq.contrib.a2a import routes as a2a
from brainq.contrib.mcp_server.tools import TURN_TOOLS, SubmitInput
from brainq.gateway.rest.bodies import SubmitBody
from brainq.gateway.rest.bulk import NEEDED as BULKS
from brainq.gateway.rest.schedules import ScheduleBody
from brainq.gateway.wires.chat.requests import ApprovalDecision, CallAnswer, ClientResult
from brainq.gateway.wires.openai import responses
from tests.integration.gateway.test_door import GIVEN as OPTIONS
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_tenant_table import (
    DECIDED,
    DECIDED_THERE,
    GIVEN,
    RESUMED,
    TABLE,
    Asked,
    Desk,
    chat,
    completed,
    lived_in,
    resource,
    rpc,
    run,
    scheduled,
    tool,
)
from tests.integration.gateway.test_tenants import rows_about
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.verbs import A2A_VERBS, ALL_VERBS, DOCUMENTED_VERBS, MCP_VERBS

Needs = frozenset[Verb]
Row = tuple[str, Asked, Needs]
"""The route, the request, and the verbs that it needs."""

READ, SUBMIT, STEER, DECIDE, CONFIGURE = Verb.READ, Verb.SUBMIT, Verb.STEER, Verb.DECIDE, Verb.CONFIGURE
A2A, MCP = *A2A_VERBS, *MCP_VERBS
CHATS = ("POST /api/chat", "POST /agui", "POST /agui/{brain}", "POST /v1/chat/completions", "POST /v1/responses")
"""Routes that do what their body says."""

BESIDE: dict[str, tuple[Verb, ...]] = {
    "POST /v1/bulk": (STEER,),
    "DELETE /v1/responses/{response_id}": (READ,),
    "POST /v1/responses/{response_id}/cancel": (READ,),
    # What comes as the turn ends becomes a turn of its own.
    "POST /v1/turns/{turn_id}/input": (SUBMIT,),
    "POST /v1/sessions/{session_id}/input": (SUBMIT,),
}
"""What a route needs beside the verb that the fronts' table has for it."""

ROUND = '{"turn_id": "{turn_id}", "seq": 0, "asks": {"{approval_id}": "{args_hash}"}}'
RINGING = {"role": "tool", "tool_call_id": "{ringing}-c1-0", "content": "x"}
GIVEN_THERE = {"type": "function_call_output", "call_id": "{ringing}-c1-0", "output": "x"}


def row(route: str, asked: Asked, *needs: Verb) -> Row:
    return route, asked, frozenset(needs)


def plain() -> Iterator[Row]:
    """Routes that do one thing."""
    for route, verb in DOCUMENTED_VERBS.items():
        if route not in CHATS:
            yield row(route, TABLE[route][0], verb, *BESIDE.get(route, ()))
    for verb, needs in BULKS.items():
        asked = Asked(body={"verb": verb, "where": "state=queued", "dry_run": True})
        yield row("POST /v1/bulk", asked, Verb.OPERATE, needs)
    replaces = {"session_id": "acme:7", "user_message": "x", "on_busy": "replace"}
    yield row("POST /v1/turns", Asked(body=replaces), SUBMIT, STEER)
    yield row("POST /v1/schedules", scheduled(name="{name}", on_busy="replace"), SUBMIT, STEER)


def configured() -> Iterator[Row]:
    """What is the brain's to say, on each front that begins turns."""
    for option in CONFIGURE_OPTIONS & set(SubmitBody.model_fields):
        body = {"session_id": "acme:8", "user_message": "x", option: OPTIONS[option]}
        yield row("POST /v1/turns", Asked(body=body), SUBMIT, CONFIGURE)
    for option in CONFIGURE_OPTIONS & set(ScheduleBody.model_fields):
        yield row("POST /v1/schedules", scheduled(name="{name}", **{option: OPTIONS[option]}), SUBMIT, CONFIGURE)
    for option in CONFIGURE_OPTIONS & set(SubmitInput.model_fields):
        asked = tool("submit", {"message": "x", "session": "acme:8", option: OPTIONS[option]})
        yield row(MCP, asked, READ, SUBMIT, CONFIGURE)
    chat_body: dict[str, Any] = completed({"role": "user", "content": "x"}) | {"stream": True}
    told = {"messages": [{"role": "system", "content": "Obey."}, *chat_body["messages"]]}
    for body in (chat_body | told, chat_body | {"stop": "x"}):
        yield row("POST /v1/chat/completions", Asked(body=body), READ, SUBMIT, CONFIGURE)
    body = {"input": "x", "background": True, "instructions": "Obey."}
    yield row("POST /v1/responses", Asked(body=body), READ, SUBMIT, CONFIGURE)


def chats() -> Iterator[Row]:
    """Chat wires: a question, a decision, a result of the client's own tool."""
    begins = completed({"role": "user", "content": "x"}) | {"stream": True}
    yield row("POST /v1/chat/completions", Asked(body=begins), READ, SUBMIT)
    given = completed(RINGING) | {"stream": True}
    yield row("POST /v1/chat/completions", Asked(body=given), READ, SUBMIT, STEER)
    yield row("POST /v1/responses", Asked(body={"input": "x", "background": True}), READ, SUBMIT)
    body = {"input": [GIVEN_THERE], "stream": True}
    yield row("POST /v1/responses", Asked(body=body), READ, SUBMIT, STEER)
    yield row("POST /api/chat", chat(session="acme:9"), READ, SUBMIT)
    yield row("POST /api/chat", chat(DECIDED, role="assistant"), READ, SUBMIT, DECIDE)
    ringing = {**GIVEN, "toolCallId": "{ringing}-c1-0"}
    yield row("POST /api/chat", chat(ringing, role="assistant", session="acme:3"), READ, SUBMIT, STEER)
    for route in ("POST /agui", "POST /agui/{brain}"):
        yield row(route, run(thread="acme:10"), READ, SUBMIT)
        yield row(route, run(resume=RESUMED), READ, SUBMIT, DECIDE)
        result = {"id": "r1", "role": "tool", "toolCallId": "{ringing}-c1-0", "content": "x"}
        asked = run(thread="acme:3")
        asked.body["messages"] = [*asked.body["messages"], result]
        yield row(route, asked, READ, SUBMIT, STEER)


def message(*parts: Any, **where: Any) -> dict[str, Any]:
    """It is sent once a row, so each has its own id."""
    said_ = {"messageId": json.dumps([parts, where]), "role": "ROLE_USER", "parts": list(parts), **where}
    return {"message": said_, "configuration": {"returnImmediately": True}}


def agents() -> Iterator[Row]:
    """A2A: each method, and what a message may be."""
    text = {"text": "x"}
    it, ringing = {"taskId": "{turn_id}"}, {"taskId": "{ringing}"}
    approve = {"data": {"call": "{approval_id}", "decision": "approve"}}
    edited = {"data": {**approve["data"], "arguments": {"name": "b"}}}
    deny = {"data": {"call": "{approval_id}", "decision": "deny"}}
    for method in ("SendMessage", "SendStreamingMessage"):
        yield row(A2A, rpc(method, message(text, contextId="acme:11")), READ, SUBMIT)
        yield row(A2A, rpc(method, message(text, **it)), READ, SUBMIT, STEER)
        for decision in (approve, edited, deny):
            yield row(A2A, rpc(method, message(decision, **it)), READ, DECIDE)
        for result in ({"result": 1}, {"error": "none"}):
            given = {"data": {"call": "{ringing}-c1-0", **result}}
            yield row(A2A, rpc(method, message(given, **ringing)), READ, STEER)
    yield row(A2A, rpc("CancelTask", {"id": "{turn_id}"}), READ, STEER)
    asks = {"GetTask": {"id": "{turn_id}"}, "SubscribeToTask": {"id": "{turn_id}"}}
    for method in a2a.METHODS.keys() - {"SendMessage", "SendStreamingMessage", "CancelTask"}:
        yield row(A2A, rpc(method, asks.get(method, {})), READ)


CALLED: dict[str, tuple[dict[str, Any], tuple[Verb, ...]]] = {
    "submit": ({"message": "x", "session": "acme:12"}, (SUBMIT,)),
    "result": ({"turn_id": "{turn_id}"}, ()),
    "watch": ({"turn_id": "{turn_id}"}, ()),
    "list": ({}, ()),
    "approvals": ({}, ()),
    "steer": ({"turn_id": "{turn_id}", "text": "x"}, (STEER, SUBMIT)),
    "cancel": ({"turn_id": "{turn_id}"}, (STEER,)),
    "approve": ({"approval_id": "{approval_id}"}, (DECIDE,)),
    "deny": ({"approval_id": "{approval_id}"}, (DECIDE,)),
}
"""Of each tool of the MCP front the arguments, and the verbs that it needs beside `read`."""


def tools() -> Iterator[Row]:
    """MCP: each tool, the brain's own, a decision that comes back with its call, resources."""
    for name, (arguments, needs) in CALLED.items():
        yield row(MCP, tool(name, arguments), READ, *needs)
    yield row(MCP, tool("approve", {"approval_id": "{approval_id}", "arguments": {}}), READ, DECIDE)
    yield row(MCP, tool("gate", {"message": "x", "session": "acme:13", "wait_s": 0}), READ, SUBMIT)
    back = tool("gate", {"message": "x", "wait_s": 0}, requestState=ROUND, inputResponses=DECIDED_THERE)
    yield row(MCP, back, READ, SUBMIT, DECIDE)
    yield row(MCP, resource("brainq://turns/{turn_id}"), READ)
    for part in ("transcript", "files/{sha256}"):
        yield row(MCP, resource(f"brainq://turns/{{turn_id}}/{part}"), READ)


ROWS: tuple[Row, ...] = (*plain(), *configured(), *chats(), *agents(), *tools())


def test_every_front_s_every_verb_is_a_row() -> None:
    routes = {route for route, _, _ in ROWS}
    assert routes == set(ALL_VERBS)
    for route, verb in ALL_VERBS.items():
        assert all(verb in needs for its, _, needs in ROWS if its == route), route
    assert {asked.body["method"] for route, asked, _ in ROWS if route == A2A} == set(a2a.METHODS)
    assert set(CALLED) == set(TURN_TOOLS)
    for name, (_, needs) in CALLED.items():
        assert {READ, *needs} == TURN_TOOLS[name].needs | {READ}, name
    assert set(OPTIONS) == CONFIGURE_OPTIONS
    for body in (SubmitBody, SubmitInput, ScheduleBody):
        assert set(body.model_fields) >= CONFIGURE_OPTIONS, "each of them is asked for"
    # What a message to a chat, or to a task, may be: each kind has its rows above.
    assert set(get_args(CallAnswer)) == {ApprovalDecision, ClientResult}
    assert set(get_args(messages.CallAnswer)) == {messages.ApprovalDecision, messages.ClientResult}


def outcome(route: str, answer: httpx.Response) -> str:
    """`forbidden`, `unknown` who asks, or `let in`: whatever came of it then."""
    if answer.status_code == 401:
        return "unknown"
    if answer.status_code == 403:
        told = answer.json()
        word = told["error"]["code"] if "error" in told else told["type"].rpartition(":")[2]
        return str(word)
    if route == MCP:
        told = json.loads(answer.text.partition("data: ")[2])
        problem = told.get("result", {}).get("_meta", {}).get("brainq/problem", {})
        no_tool = "no such tool" in told.get("error", {}).get("message", "")
        return "forbidden" if no_tool or problem.get("type", "").endswith(":forbidden") else "let in"
    return "let in"


@pytest.fixture
def gateway(whole_gateway: GatewayThread) -> GatewayThread:
    return whole_gateway


@pytest.fixture
def desk(gateway: GatewayThread, pump: Pump, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(a2a, "CANCEL_WAIT_S", 0.0)
    monkeypatch.setattr(responses, "CANCEL_S", 0.0)
    return Desk(gateway, pump)


def test_without_one_of_its_verbs_nothing_is_done_and_with_them_alone_it_is(
    gateway: GatewayThread, pump: Pump, desk: Desk
) -> None:
    without = {verb: token(pump, f"no {verb}", "*", *(set(Verb) - {verb})) for verb in Verb}
    just = {needs: token(pump, f"just {number}", "*", *needs) for number, needs in enumerate({n for *_, n in ROWS})}
    ids = lived_in(gateway, pump, token(pump, "acme", "acme:"))
    ids |= {"args_hash": pump.client.approval(ids["approval_id"]).args_hash}

    def standing() -> Any:
        open_ = [pump.client.handle(ids[name]).snapshot() for name in ("turn_id", "ringing")]
        return rows_about(pump), [(turn.state, turn.cancel_requested) for turn in open_ if turn is not None]

    before, wrong = standing(), list[str]()
    for route, asked, needs in ROWS:
        where = f"{route}{asked.query} {asked.body or ''}"
        for verb in sorted(needs):
            found = outcome(route, desk.ask(route, asked, ids, without[verb]))
            if found != "forbidden":
                wrong.append(f"{where}: without {verb}: {found}")
    assert not wrong, "\n".join(wrong)
    assert standing() == before
    assert pump.client.approval(ids["approval_id"]).state == "pending"

    for route, asked, needs in sorted(ROWS, key=lambda row: DECIDE not in row[2]):  # before the turn is cancelled
        answer = desk.ask(route, asked, ids, just[needs])
        if outcome(route, answer) != "let in":
            wrong.append(f"{route}{asked.query} {asked.body or ''}: {set(needs)} is not enough: {answer.text}")
    assert not wrong, "\n".join(wrong)
    assert pump.client.approval(ids["approval_id"]).state == "approved", "what is let in is done"


@pytest.mark.parametrize("may_configure", [False, True])
def test_what_clients_send_by_themselves_counts_of_who_may_configure(
    gateway: GatewayThread, pump: Pump, desk: Desk, may_configure: bool
) -> None:
    """AG-UI has context with every run, OpenAI's clients have numbers: of others they are left out, not refused."""
    runs = run(thread="acme:1", context=[{"description": "Where", "value": "In the shop."}])
    runs.body["messages"] = [{"id": "s", "role": "system", "content": "Obey."}, *runs.body["messages"]]
    widens = Asked(body={"input": "x", "background": True, "max_tool_calls": 10_000, "temperature": 1})
    headers = token(pump, "page", "acme:", READ, SUBMIT, *([CONFIGURE] if may_configure else []))
    for route, asked in (("POST /agui", runs), ("POST /v1/responses", widens)):
        assert desk.ask(route, asked, {"ringing": "", "turn_id": ""}, headers).status_code == 200
    widened, ran = (pump.client.handle(turn.turn_id).request() for turn in pump.client.turns(limit=2))
    assert ran.skill_context == ("Obey.\n\nWhere: In the shop." if may_configure else None)
    assert widened.limits.max_tool_calls == (10_000 if may_configure else None)
    assert (widened.options is not None and widened.options.temperature == 1) == may_configure


def test_of_a_decision_that_comes_back_nothing_is_believed(gateway: GatewayThread, pump: Pump, desk: Desk) -> None:
    """An MCP client says which turn, which approval and which arguments its user saw."""
    foreign, own = pump.submit("acme:1", "save").turn_id, pump.submit("evil:1", "save").turn_id
    pump.drain()
    ids = {"ringing": "", "turn_id": own, "theirs": f"{foreign}-c1-0", "ours": f"{own}-c1-0"}
    hashes = {name: pump.client.approval(ids[name]).args_hash for name in ("theirs", "ours")}
    mine = token(pump, "evil", "evil:")

    def decide(asks: dict[str, str]) -> None:
        state = json.dumps({"turn_id": own, "seq": 0, "asks": {ids[name]: said for name, said in asks.items()}})
        decided = {ids[name]: DECIDED_THERE["{approval_id}"] for name in asks}
        asked = tool("gate", {"message": "x", "wait_s": 0}, requestState=state, inputResponses=decided)
        assert desk.ask(MCP, asked, ids, mine).status_code == 200

    for asks in ({"theirs": hashes["theirs"]}, {"ours": "of others"}):
        decide(asks)
        assert {pump.client.approval(ids[name]).state for name in hashes} == {"pending"}, asks
    decide({"ours": hashes["ours"]})
    assert [pump.client.approval(ids[name]).state for name in hashes] == ["pending", "approved"]
