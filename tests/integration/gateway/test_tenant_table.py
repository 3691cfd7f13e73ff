"""Every route of the gateway, asked by the wrong tenant, with the wrong scope and with no token: refused, nothing told.

"Nothing told" is meant to the byte: what another tenant's id is answered is what an id is answered that nobody has,
but for the id itself, and the gateway asks SQL and Redis the same for both.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route

from brainq.adapters.sql.prepared import Prepared
from brainq.app.access import Verb
from brainq.contracts.file import File
from brainq.contracts.memory import MemoryItem
from brainq.contracts.webhook import NewDelivery
from brainq.engine.jobs import delivery_key
from brainq.gateway.app import make_app
from brainq.gateway.edge.access import is_public
from brainq.gateway.page.routes import load_assets
from tests.integration.gateway.conftest import given
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_tenants import rows_about
from tests.support.blobs import png
from tests.support.builds import announce
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.verbs import A2A_VERBS, ALL_VERBS, MCP_VERBS
from tests.support.wait import wait_until

Ids = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a route, with `{turn_id}` and the like for ids: in its path, in `query`, in its body."""

    query: str = ""
    body: Any = None
    is_list: bool = False
    """Names nothing: who has nothing is answered with nothing, not refused."""
    needs: Verb | None = None
    """Beside the route's own verb, where that depends on what is asked."""


IT = (Asked(),)
TEXT = (Asked(body={"text": "x"}),)
LISTED = (
    Asked(is_list=True),
    Asked("?session={session_id}"),
    Asked("?after={turn_id}"),
    Asked("?session={own_session}&after={turn_id}"),
)


def rpc(method: str, params: Any, needs: Verb | None = None) -> Asked:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Asked("?A2A-Version=1.0", body=body, needs=needs)


def tool(name: str, arguments: Any, **more: Any) -> Asked:
    params = {"name": name, "arguments": arguments, **more}
    return Asked(body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def resource(uri: str) -> Asked:
    return Asked(body={"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}})


def message(**where: str) -> dict[str, Any]:
    return {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "x"}], **where}}


def chat(*parts: Any, role: str = "user", needs: Verb | None = None, session: str = "{session_id}") -> Asked:
    said = {"id": "m1", "role": role, "parts": list(parts) or [{"type": "text", "text": "x"}]}
    return Asked(body={"id": session, "messages": [said]}, needs=needs)


def run(*, needs: Verb | None = None, thread: str = "{session_id}", **more: Any) -> Asked:
    said = {"id": "m1", "role": "user", "content": "x"}
    return Asked(body={"threadId": thread, "runId": "r1", "messages": [said], **more}, needs=needs)


DECIDED = {"type": "tool-save", "state": "approval-responded", "approval": {"id": "{approval_id}", "approved": True}}
GIVEN = {"type": "tool-ring", "state": "output-available", "toolCallId": "{turn_id}-c1-0", "output": 1}
RESUMED = [{"interruptId": "{approval_id}", "status": "resolved", "payload": {"approved": True}}]

ROUND = '{"turn_id": "{turn_id}", "seq": 0, "asks": {"{approval_id}": "x"}}'
DECIDED_THERE = {"{approval_id}": {"action": "accept", "content": {"decision": "approve"}}}
"""What an MCP client brings back with its user's decision."""

WEEKLY = {"session_id": "acme:{date}", "user_message": "look", "when": 604_800}

OF_NOBODY = frozenset({"GET /v1/brains", "GET /v1/caller", "GET /v1/models", "GET /v1/models/{model}"})
"""Told to everybody alike: what they tell is the deployment's."""

RUNS = (
    run(),
    run(needs=Verb.READ),
    run(resume=RESUMED, needs=Verb.DECIDE),
    run(resume=RESUMED, thread="{own_session}"),
)


def scheduled(**said: str) -> Asked:
    return Asked(body={"session_id": "{session_id}", "user_message": "x", "when": 3600, **said})


def completed(last: dict[str, Any]) -> dict[str, Any]:
    return {"model": "gate", "messages": [last]}


TABLE: Mapping[str, tuple[Asked, ...]] = {
    "GET /v1/brains": IT,
    "GET /v1/caller": IT,
    "POST /v1/turns": (
        Asked(body={"session_id": "{session_id}", "user_message": "x"}),
        Asked(body={"session_id": "{session_id}", "user_message": "x", "on_busy": "replace"}),
    ),
    "GET /v1/turns": (*LISTED, Asked("?text={turn_id}"), Asked("?text={session_id}")),
    "GET /v1/sessions": (Asked(is_list=True), Asked("?prefix={session_id}"), Asked("?after={turn_id}")),
    "GET /v1/fleet": IT,
    "GET /v1/fleet/activity": IT,
    "GET /v1/cells": IT,
    "GET /v1/versions": IT,
    "POST /v1/versions/ramp": (Asked(body={"build": "1.5", "share": 0}),),
    "POST /v1/versions/release": (Asked(body={"build": "1.4", "to": "1.5"}),),
    "GET /v1/scale": (*IT, Asked("?pool=serial&min=0&max=4")),
    "GET /v1/spend": (Asked("?by=tenant,day", is_list=True), Asked("?by=tool", is_list=True)),
    "GET /v1/budgets": (Asked(is_list=True),),
    "PUT /v1/budgets": (Asked(body={"scope": "all", "per": "day", "usd": 1e9}),),
    "POST /v1/budgets/raise": (Asked(body={"scope": "all", "per": "day", "usd": 1.0}),),
    "GET /metrics": IT,
    "GET /v1/turns/{turn_id}": IT,
    "GET /v1/turns/{turn_id}/request": IT,
    "GET /v1/turns/{turn_id}/children": IT,
    "GET /v1/turns/{turn_id}/explain": IT,
    "GET /v1/turns/{turn_id}/timeline": IT,
    "GET /v1/turns/{turn_id}/decision": IT,
    "GET /v1/turns/{turn_id}/result": IT,
    "GET /v1/turns/{turn_id}/transcript": IT,
    "GET /v1/turns/{turn_id}/files/{sha256}": IT,
    "GET /v1/turns/{turn_id}/calls": (*IT, Asked("?after={turn_id}-c1-0")),
    "GET /v1/turns/{turn_id}/events": IT,
    "POST /v1/turns/{turn_id}/input": (*TEXT, Asked(body={"text": "x", "expected_turn_id": "{turn_id}"})),
    "GET /v1/turns/{turn_id}/input/{client_message_id}": IT,
    "POST /v1/turns/{turn_id}/calls/{call_id}/result": (Asked(body={"result": 1}),),
    "POST /v1/turns/{turn_id}/cancel": IT,
    "GET /v1/turns/{turn_id}/holds": IT,
    "POST /v1/turns/{turn_id}/holds": IT,
    "DELETE /v1/turns/{turn_id}/holds/{hold_id}": IT,
    "GET /v1/turns/{turn_id}/approvals": IT,
    "POST /v1/turns/{turn_id}/finalizer/retry": IT,
    "GET /v1/approvals": (Asked(is_list=True), Asked("?session={session_id}"), Asked("?state=all", is_list=True)),
    "GET /v1/approvals/{approval_id}": IT,
    "POST /v1/approvals/{approval_id}/approve": IT,
    "POST /v1/approvals/{approval_id}/deny": IT,
    "POST /v1/approvals/{approval_id}/edit": (Asked(body={"arguments": {}}),),
    "POST /v1/outside/{token}": (Asked(body={"result": 1}), Asked(body={"error": "none"})),
    "GET /v1/sessions/{session_id}": IT,
    "GET /v1/sessions/{session_id}/history": (*IT, Asked("?after={turn_id}")),
    "POST /v1/sessions/{session_id}/input": TEXT,
    "POST /v1/sessions/{session_id}/pause": IT,
    "POST /v1/sessions/{session_id}/resume": IT,
    "POST /v1/sessions/{session_id}/interrupt": IT,
    "DELETE /v1/sessions/{session_id}/waiting/{turn_id}": IT,
    "POST /v1/sessions/{session_id}/flags": IT,
    "DELETE /v1/sessions/{session_id}/flags/{flag_id}": IT,
    "POST /v1/sessions/{session_id}/compact": IT,
    "POST /v1/schedules": (
        scheduled(name="{name}"),
        scheduled(name="{name}", session_id="{own_session}"),
        scheduled(name="{own_session}"),
        scheduled(name="{name}", on_busy="replace"),
        scheduled(name="{name}", model="scripted:x"),
    ),
    "GET /v1/schedules": (Asked(is_list=True), Asked("?after={above_name}", is_list=True)),
    "GET /v1/schedules/{name}": IT,
    "POST /v1/schedules/{name}/pause": IT,
    "POST /v1/schedules/{name}/resume": IT,
    "DELETE /v1/schedules/{name}": IT,
    "GET /v1/audit": (Asked(is_list=True),),
    "POST /v1/bulk": (
        Asked(body={"verb": "cancel", "where": "tenant={tenant}", "dry_run": True}),
        Asked(body={"verb": "cancel", "where": "session={session_id}", "dry_run": True}),
    ),
    "GET /v1/bulk/{bulk_id}": IT,
    "DELETE /v1/bulk/{bulk_id}": IT,
    "GET /v1/stops": (Asked(is_list=True),),
    "POST /v1/stops": (
        Asked(body={"kind": "{kind}", "name": "{stopped}", "tenant": "{tenant}"}),
        Asked(body={"kind": "tenant", "name": "{tenant}"}),
    ),
    "DELETE /v1/stops/{kind}/{stopped}": (Asked("?tenant={tenant}"),),
    "GET /v1/memories": (
        Asked("?scope={session_id}", is_list=True),
        Asked("?session={session_id}"),
        Asked("?scope={own_session}&after={above_memory}", is_list=True),
    ),
    "DELETE /v1/memories/{memory_id}": IT,
    "DELETE /v1/memories": (Asked("?scope={session_id}"), Asked("?session={session_id}")),
    "POST /api/chat": (
        chat(),
        chat(needs=Verb.READ),
        chat(DECIDED, role="assistant", needs=Verb.DECIDE),
        chat(DECIDED, role="assistant", session="{own_session}"),
        chat(GIVEN, role="assistant", needs=Verb.STEER),
        chat(GIVEN, role="assistant", session="{own_session}"),
    ),
    "GET /api/chat/{session_id}/stream": (*IT, Asked("?turn={turn_id}")),
    "POST /api/chat/{session_id}/stop": (*IT, Asked("?turn={turn_id}")),
    "POST /agui": RUNS,
    "POST /agui/{brain}": RUNS,
    "GET /v1/webhooks/deliveries": (
        Asked(is_list=True),
        Asked("?state=dead", is_list=True),
        Asked("?after={above_delivery}", is_list=True),
    ),
    "POST /v1/webhooks/deliveries/{delivery_id}/retry": IT,
    "POST /v1/chat/completions": (
        Asked(body=completed({"role": "tool", "tool_call_id": "{call_id}", "content": "x"}) | {"stream": True}),
        Asked(body=completed({"role": "user", "content": "x"}) | {"metadata": {"session_id": "{session_id}"}}),
    ),
    "POST /v1/responses": (
        Asked(body={"input": "x", "previous_response_id": "{response_id}", "background": True}),
        Asked(body={"input": "x", "conversation": "{session_id}"}),
        Asked(body={"input": [{"type": "function_call_output", "call_id": "{call_id}", "output": "x"}]}),
    ),
    "GET /v1/responses/{response_id}": (*IT, Asked("?stream=true"), Asked("?stream=true&starting_after=1")),
    "GET /v1/responses/{response_id}/input_items": (*IT, Asked("?after=msg_{turn_id}.1.0")),
    "POST /v1/responses/{response_id}/cancel": IT,
    "DELETE /v1/responses/{response_id}": IT,
    "GET /v1/models": IT,
    "GET /v1/models/{model}": IT,
    "POST /a2a/{brain}": (
        rpc("GetTask", {"id": "{turn_id}", "historyLength": 5}),
        rpc("SubscribeToTask", {"id": "{turn_id}"}),
        rpc("CancelTask", {"id": "{turn_id}"}, Verb.STEER),
        rpc("SendMessage", message(taskId="{turn_id}"), Verb.STEER),
        rpc("SendMessage", message(contextId="{session_id}"), Verb.SUBMIT),
        rpc("SendStreamingMessage", message(taskId="{turn_id}"), Verb.STEER),
    ),
    "POST /mcp": (
        tool("result", {"turn_id": "{turn_id}"}),
        tool("watch", {"turn_id": "{turn_id}"}),
        tool("list", {"session": "{session_id}"}),
        tool("list", {"after": "{turn_id}", "text": "{turn_id}"}),
        tool("approvals", {"session": "{session_id}"}),
        tool("steer", {"turn_id": "{turn_id}", "text": "x"}),
        tool("cancel", {"turn_id": "{turn_id}"}),
        tool("approve", {"approval_id": "{approval_id}"}),
        tool("approve", {"approval_id": "{approval_id}", "arguments": {}}),
        tool("deny", {"approval_id": "{approval_id}"}),
        tool("submit", {"message": "x", "session": "{session_id}"}),
        tool("gate", {"message": "x", "session": "{session_id}"}),
        tool("gate", {"message": "x"}, requestState=ROUND, inputResponses=DECIDED_THERE),
        resource("brainq://turns/{turn_id}"),
        resource("brainq://turns/{turn_id}/transcript"),
        resource("brainq://turns/{turn_id}/files/{sha256}"),
    ),
}


def collected(routes: Sequence[Any], prefix: str = "") -> set[str]:
    """All that the app answers, whatever serves it."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, Mount):
            found.add(f"MOUNT {prefix}{route.path}")
        elif isinstance(route, Route):
            methods = (route.methods or set()) - {"HEAD"}
            found |= {f"{method} {prefix}{route.path_format}" for method in methods}
        else:  # a router that was included, which FastAPI keeps whole
            found |= collected(route.original_router.routes, prefix + route.include_context.prefix)
    return found


def open_routes(app: FastAPI) -> set[str]:
    return {route for route in collected(app.routes) if is_public(route.partition(" ")[2])}


def open_paths(app: FastAPI) -> list[str]:
    """All that everybody gets: each asset of the page, too."""
    found = {route.removeprefix("GET ").replace("{brain}", "gate") for route in open_routes(app)}
    found.remove("/page/{release}/{name}")
    page = load_assets()
    found |= {f"/page/{page.release}/{name}" for name in page.files}
    assert all(path.startswith("/") and "{" not in path for path in found), found
    return sorted(found)


@pytest.fixture
def gateway(whole_gateway: GatewayThread) -> GatewayThread:
    return whole_gateway


def test_every_route_stands_in_the_table(gateway: GatewayThread) -> None:
    app = make_app(gateway.gateway)
    assert collected(app.routes) == set(TABLE) | open_routes(app)
    assert set(TABLE) == set(NEEDED)


def lived_in(gateway: GatewayThread, pump: Pump, mine: Any) -> dict[str, str]:
    """A tenant with a turn that waits for an approval, one behind it, one that waits for its client; and more."""
    given.clear()

    def ask(method: str, path: str, body: Any = None) -> Any:
        answer = gateway.http.request(method, path, json=body, headers=mine)
        assert answer.is_success, answer.text
        return answer.json()

    def submit(session: str, said: str, **more: Any) -> str:
        return ask("POST", "/v1/turns", {"session_id": session, "user_message": said, **more})["turn_id"]

    for build, digest in (("1.4", "d01d"), ("1.5", "0e00")):
        announce(pump.wiring, build, digest)
    pump.client.budgets.set("tenant acme:", per="day", usd=1e9)
    picture = File(png())
    sent = {"data": base64.b64encode(picture.data).decode()}
    turn_id = submit("acme:1", "save", attachments=[sent])
    submit("acme:1", "look")
    submit("acme:2", "order")
    submit("acme:4", "look")
    ringing = submit("acme:3", "ring", client_tools=[{"name": "ring"}])
    pump.drain()
    ask("POST", f"/v1/turns/{turn_id}/input", {"text": "hurry", "client_message_id": "m1"})
    ask("POST", "/v1/stops", {"kind": "tool", "name": "shred", "tenant": "acme"})
    bulk_id = ask("POST", "/v1/bulk", {"verb": "cancel", "where": "state=queued", "dry_run": True})["id"]
    wait_until(lambda: ask("GET", f"/v1/bulk/{bulk_id}")["ended_at"], "it is over")
    return {
        "turn_id": turn_id,
        "ringing": ringing,
        "session_id": "acme:1",
        "sha256": picture.attachment.sha256,
        "approval_id": f"{turn_id}-c1-0",
        "token": given[0],
        "client_message_id": "m1",
        "call_id": f"{ringing}-c1-0",
        "hold_id": ask("POST", f"/v1/turns/{turn_id}/holds")["id"],
        "flag_id": ask("POST", "/v1/sessions/acme:1/flags")["id"],
        "delivery_id": str(given_up(pump, turn_id)),
        "above_delivery": "999",
        "memory_id": str(remembered(pump, "acme:1", turn_id)),
        "above_memory": "999",
        "own_session": "evil:1",
        "name": ask("POST", "/v1/schedules", {**WEEKLY, "name": "acme:weekly"})["name"],
        "above_name": "acme:a",
        "kind": "tool",
        "stopped": "shred",
        "bulk_id": bulk_id,
        "tenant": "acme",
        "response_id": f"resp_{turn_id}",
        "model": pump.wiring.brains.default.name,
        "brain": pump.wiring.brains.default.name,
    }


def given_up(pump: Pump, turn_id: str) -> int:
    """A dead delivery of the tenant's."""
    store, url = pump.wiring.store, "https://hooks.example/secret-path"
    with store.database.transaction() as connection:
        new = NewDelivery("msg-1", url, "turn.ended", "acme:1", turn_id, "{}")
        store.deliveries.plan(connection, [new])
    claimed = store.deliveries.claim(url, 60.0)
    assert claimed is not None
    assert store.deliveries.fail(delivery_key(claimed.row), claimed.tries, "HTTP 500", None)
    return claimed.row


def nobodys(ids: Ids) -> dict[str, str]:
    """The like of each, which nobody has."""
    turn_id = "0" * len(ids["turn_id"])
    return {
        **ids,
        "turn_id": turn_id,
        "ringing": turn_id,
        "session_id": "acme:9",
        "sha256": "0" * 64,
        "response_id": f"resp_{turn_id}",
        "approval_id": f"{turn_id}-c1-0",
        "token": ids["token"][:-8] + "AAAAAAAA",
        "client_message_id": "m9",
        "call_id": f"{turn_id}-c1-0",
        "hold_id": "nohold",
        "flag_id": "noflag",
        "delivery_id": "998",
        "above_delivery": "1",
        "memory_id": "998",
        "above_memory": "1",
        "name": "acme:none",
        "above_name": "acme:z",
        "stopped": "shrub",
        "bulk_id": turn_id,
    }


def remembered(pump: Pump, session_id: str, turn_id: str) -> int:
    """The newer of two memories that this session has."""
    store = pump.wiring.store
    with store.database.transaction() as connection:
        items = [MemoryItem(kind="fact", text=said) for said in ("Likes tea.", "Likes milk.")]
        store.memories.merge(connection, scope=session_id, session_id=session_id, turn_id=turn_id, items=items)
    row = store.memories.page([session_id], 1)[0].row
    assert isinstance(row, int)
    return row


class Desk:
    """Asks the gateway, and listens to what it asks SQL and Redis."""

    def __init__(self, gateway: GatewayThread, pump: Pump) -> None:
        self._gateway = gateway
        self._redis: Any = pump.wiring.state.redis

    def ask(self, route: str, asked: Asked, ids: Ids, headers: Any) -> httpx.Response:
        method, path = route.split(" ")
        turn_id = ids["ringing"] if "{call_id}" in route else ids["turn_id"]
        filled = _filled([path + asked.query, asked.body], {**ids, "turn_id": turn_id})
        with self._gateway.http.stream(method, filled[0], json=filled[1], headers=headers) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            if not is_stream or route in MCP_VERBS:
                answer.read()
                return answer
            return httpx.Response(answer.status_code, headers=answer.headers)  # a stream, which need not end

    def told(self, route: str, asked: Asked, ids: Ids, headers: Any) -> tuple[Any, ...]:
        """The answer without the ids that were asked for, and what it took."""
        with self._heard() as heard:
            answer = self.ask(route, asked, ids, headers)
        body, shown = answer.text, dict(answer.headers)
        for name, found in sorted(ids.items(), key=lambda item: -len(item[1])):
            if "delivery" not in name and "memory" not in name:  # a number would be met anywhere; none is told back
                body = body.replace(found, f"<{name}>")
        for name in ("date", "content-length", "x-request-id"):  # each answer has its own
            shown.pop(name, None)
        return answer.status_code, body, shown, dict(heard)

    @contextmanager
    def _heard(self) -> Generator[Counter[str]]:
        heard: Counter[str] = Counter()
        for_driver = Prepared.for_driver

        def hear(prepared: Prepared, given: Mapping[str, Any]) -> tuple[str, Any]:
            text, values = for_driver(prepared, given)
            heard[text] += 1
            return text, values

        self._redis.config_resetstat()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Prepared, "for_driver", hear)
            yield heard
        for name, said in self._redis.info("commandstats").items():
            if name not in ("cmdstat_config|resetstat", "cmdstat_info", "cmdstat_ping"):
                heard[name] += said["calls"]


def is_refusal(route: str, told: tuple[Any, ...]) -> bool:
    status, body = told[:2]
    if route in OF_NOBODY:
        return status == 200
    if route in MCP_VERBS:
        said = json.loads(body.partition("data: ")[2])
        found = said.get("result", {})
        nothing = found.get("structuredContent", {}).get("turns") == []
        return status == 200 and ("error" in said or found.get("isError", False) or nothing)
    if route in A2A_VERBS:
        return status == 200 and "error" in json.loads(body) and "result" not in json.loads(body)
    is_empty = ":[]" in body.replace('"cells_away":[]', "")  # of cells there is one, and it is not away
    return status == 404 or (route in LISTS and (status == 422 or (status == 200 and is_empty)))


def _filled(value: Any, ids: Ids) -> Any:
    text = json.dumps(value)
    for name, found in ids.items():
        text = text.replace(f"{{{name}}}", found)
    return json.loads(text)


def test_who_asks_for_what_is_anothers_is_refused_and_told_nothing(
    gateway: GatewayThread, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("READ_AGAIN_S", "UNHEARD_S"):  # what is read again after a while is no answer's own
        monkeypatch.setattr(f"brainq.engine.people.budgets.{name}", 3600.0)
    mine, theirs, all_ = (token(pump, name, of) for name, of in (("acme", "acme:"), ("evil", "evil:"), ("all", "*")))
    scopes = {verb: token(pump, f"no {verb}", "*", *(other for other in Verb if other is not verb)) for verb in Verb}
    app = make_app(gateway.gateway)
    unlived = {path: gateway.http.get(path).content for path in open_paths(app)}
    ids = lived_in(gateway, pump, mine)
    absent = nobodys(ids)
    desk = Desk(gateway, pump)
    for headers in (mine, theirs, *scopes.values()):
        gateway.http.get("/v1/approvals", headers=headers)  # from here on each of them is known
    gateway.http.get("/v1/budgets", headers=all_)  # and what Redis' clock says, which is asked once
    redis: Any = pump.wiring.state.redis
    wait_until(lambda: redis.pubsub_numsub(pump.wiring.state.keys.budgets)[0][1], "it listens, which reads the limits")
    before, wrong = rows_about(pump), list[str]()
    heard = " ".join(desk.told("GET /v1/turns/{turn_id}", Asked(), ids, mine)[3])
    assert ("SELECT" in heard, "cmdstat_" in heard) == (True, True), "it is listened to"

    for route, requests in TABLE.items():
        for asked in requests:
            where = f"{route}{asked.query} {asked.body or ''}"
            foreign = desk.told(route, asked, ids, theirs)
            missing = desk.told(route, asked, absent, theirs)
            if foreign != missing:
                wrong.append(f"{where}: {foreign} is not {missing}")
            if not is_refusal(route, foreign):
                wrong.append(f"{where}: the wrong tenant is answered {foreign[:2]}")
            without = scopes[asked.needs or NEEDED[route]]
            refused = [desk.told(route, asked, each, without) for each in (ids, absent)]
            if refused[0][0] != 403 or (asked.needs is None and refused[0] != refused[1]):
                wrong.append(f"{where}: the wrong scope is answered {refused}")
            nobody = [desk.told(route, asked, each, {}) for each in (ids, absent)]
            if nobody[0] != nobody[1] or nobody[0][0] != 401 or nobody[0][3]:
                wrong.append(f"{where}: no token is answered {nobody}")

    assert not wrong, "\n".join(wrong)
    assert rows_about(pump) == before
    for path, content in unlived.items():
        assert gateway.http.get(path).content == content, f"{path} tells what there is"

    # And each request of the table asks for what is there: whose it is may. The last ones end what others look at.
    order = sorted(
        TABLE,
        key=lambda route: (
            not route.startswith("GET "),
            route.startswith("DELETE /v1/responses/"),
            "/cancel" in route,
            "DELETE" in route,
        ),
    )
    for route in order:
        answer = desk.ask(route, TABLE[route][0], ids, all_ if route in OF_NO_SESSION else mine)
        assert answer.status_code not in (401, 403, 404, 422), f"{route}: {answer.text}"
        refused = route not in OF_NOBODY and is_refusal(route, (answer.status_code, answer.text))
        assert not refused, f"{route}: {answer.text}"


NEEDED = ALL_VERBS
OF_NO_SESSION = {
    *("PUT /v1/budgets", "POST /v1/budgets/raise"),
    *("GET /v1/versions", "POST /v1/versions/ramp", "POST /v1/versions/release"),
    *("GET /v1/fleet/activity", "GET /metrics", "GET /v1/fleet", "GET /v1/cells", "GET /v1/scale"),
}
"""Who has one tenant's sessions only is answered as if it were not there."""
LISTS = {route for route, requests in TABLE.items() if any(asked.is_list for asked in requests)}


def test_a_tenant_sees_its_own_deliveries_and_of_where_they_go_the_host(gateway: GatewayThread, pump: Pump) -> None:
    mine = token(pump, "acme", "acme:", Verb.OPERATE)
    row = given_up(pump, "a-turn")
    (told,) = gateway.http.get("/v1/webhooks/deliveries?state=dead", headers=mine).json()["deliveries"]
    assert (told["id"], told["host"], told["error"]) == (row, "hooks.example", "HTTP 500")
    assert "secret-path" not in json.dumps(told)
    retry = f"/v1/webhooks/deliveries/{row}/retry"
    assert gateway.http.post(retry, headers=mine).json() == {"changed": True}
    assert gateway.http.post(retry, headers=mine).status_code == 404, "it is not dead any more"
    page = gateway.http.get("/v1/webhooks/deliveries?limit=1", headers=mine).json()
    assert (page["deliveries"][0]["state"], page["next"]) == ("pending", row)


def test_a_scope_that_two_tenants_share_shows_each_what_was_said_in_its_own_sessions(
    gateway: GatewayThread, pump: Pump
) -> None:
    first, newer = remembered(pump, "acme:1", "a-turn") - 1, remembered(pump, "acme:1", "a-turn")
    store = pump.wiring.store
    with store.database.transaction() as connection:
        foreign = {"scope": "acme:1", "session_id": "evil:1", "turn_id": "b-turn"}
        store.memories.merge(connection, **foreign, items=[MemoryItem(kind="fact", text="Likes rum.")])
    mine, theirs = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    at = "/v1/memories"

    def listed(headers: Any, more: str = "") -> list[str]:
        page = gateway.http.get(f"{at}?scope=acme:1{more}", headers=headers).json()
        return [memory["text"] for memory in page["memories"]]

    assert (len(listed(mine)), listed(theirs)) == (2, ["Likes rum."])
    page = gateway.http.get(f"{at}?scope=acme:1&limit=1", headers=mine).json()
    assert (page["memories"][0]["id"], page["next"]) == (newer, newer)
    assert len(listed(mine, f"&after={newer}")) == 1
    assert gateway.http.get(at, headers=mine).status_code == 422, "whose is to be said"
    assert "memory=Memory" in gateway.http.get(f"{at}?session=acme:1", headers=mine).json()["detail"]
    assert gateway.http.delete(f"{at}/{first}", headers=mine).json() == {"changed": True}
    assert gateway.http.delete(f"{at}?scope=acme:1", headers=mine).json() == {"forgotten": 1}
    assert (listed(mine), listed(theirs)) == ([], ["Likes rum."])
