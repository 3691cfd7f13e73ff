"""What every request passes: who asks, and for what; which host, which page; how large, how slow, how often."""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from brainq.adapters.sql.repositories.tokens import Tokens as TokenRows
from brainq.app.access import Caller, Tokens, Verb
from brainq.contracts.turn import CONFIGURE_OPTIONS
from brainq.errors import SetupError
from brainq.gateway.edge import caller_rates
from brainq.gateway.edge.authentication import LOCAL_CALLER, make_authenticator
from brainq.gateway.server import LONG_WORK_THREADS
from brainq.runtime.settings.deployment import load_settings
from tests.integration.gateway.test_turns import problem, submit
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.verbs import DOCUMENTED_VERBS
from tests.support.wait import wait_until

Gateways = Callable[..., GatewayThread]


def token(pump: Pump, name: str, sessions: str, *verbs: Verb) -> dict[str, str]:
    made = Tokens(pump.wiring.store).create(name, [sessions], verbs or tuple(Verb))
    return {"Authorization": f"Bearer {made.text}"}


def test_once_a_token_was_made_everybody_brings_one(gateways: Gateways, pump: Pump) -> None:
    headers = token(pump, "web", "*")
    gateway = gateways()
    for wrong in ({}, {"Authorization": "Bearer bq_000000000000_" + "x" * 43}, {"Authorization": "Basic eDp5"}):
        told = gateway.http.get("/v1/approvals", headers=wrong)
        problem(told, 401, "unauthorized")
        assert told.headers["www-authenticate"] == "Bearer"
    assert gateway.http.get("/v1/approvals", headers=headers).json() == {
        "approvals": [],
        "next": None,
        "cells_away": [],
    }
    for open_path in ("/healthz", "/readyz", "/v1/openapi.json"):
        assert gateway.http.get(open_path).status_code == 200


def test_any_key_will_do_on_this_machine_until_the_first_token_is_made(gateway: GatewayThread, pump: Pump) -> None:
    wrong = {"Authorization": "Bearer nobody"}
    assert gateway.http.get("/v1/approvals", headers=wrong).status_code == 200
    right = token(pump, "ann", "acme:", Verb.READ)
    wait_until(lambda: gateway.http.get("/v1/approvals", headers=wrong).status_code == 401, "the wrong key is refused")
    assert gateway.http.get("/v1/approvals", headers=right).status_code == 200


BODIES: Mapping[str, Any] = {
    "POST /v1/turns": {"session_id": "acme:1", "user_message": "x"},
    "POST /v1/turns/{turn_id}/input": {"text": "x"},
    "POST /v1/approvals/{approval_id}/edit": {"arguments": {}},
    "POST /v1/outside/{token}": {"result": 1},
    "POST /v1/sessions/{session_id}/input": {"text": "x"},
}


def test_a_token_of_one_verb_may_do_that_alone(gateways: Gateways, pump: Pump) -> None:
    tokens = {verb: token(pump, verb, "acme:", verb) for verb in Verb}
    gateway = gateways(requests_s=1_000)
    for route, needed in DOCUMENTED_VERBS.items():
        method, path = route.split(" ")
        for name in ("turn_id", "client_message_id", "hold_id", "flag_id", "token"):
            path = path.replace(f"{{{name}}}", "nobody")
        session = "acme:quiet" if path.endswith("/stream") else "acme:1"  # that of a live turn does not end
        path = path.replace("{approval_id}", "nobody-c1-0").replace("{session_id}", session)
        for verb, headers in tokens.items():
            answer = gateway.http.request(method, path, json=BODIES.get(route), headers=headers)
            # Input for a session may begin a turn, which needs another verb, too.
            if needed is not verb or route == "POST /v1/sessions/{session_id}/input":
                assert answer.status_code == 403, f"{route}: {answer.text}"  # as a problem, or in its wire's words
            else:
                assert answer.status_code not in (401, 403), route
    for headers in tokens.values():
        replacing = {"session_id": "acme:1", "user_message": "x", "on_busy": "replace"}
        problem(gateway.http.post("/v1/turns", json=replacing, headers=headers), 403, "forbidden")
    turn_id = pump.submit("acme:1", "hello").turn_id  # so may input for a turn that has ended
    told = gateway.http.post(f"/v1/turns/{turn_id}/input", json={"text": "x"}, headers=tokens[Verb.STEER])
    problem(told, 403, "forbidden")
    waiting = tokens[Verb.SUBMIT] | {"Prefer": "wait=1"}
    problem(gateway.http.post("/v1/turns", json=BODIES["POST /v1/turns"], headers=waiting), 403, "forbidden")


def test_the_first_token_closes_a_gateway_that_runs(
    gateway: GatewayThread, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.gateway.edge.authentication.KEPT_S", 0.0)
    assert gateway.http.get("/v1/approvals").status_code == 200
    headers = token(pump, "web", "*")
    problem(gateway.http.get("/v1/approvals"), 401, "unauthorized")
    assert gateway.http.get("/v1/approvals", headers=headers).status_code == 200


def test_a_path_that_ends_like_an_open_one_is_none(gateways: Gateways, pump: Pump) -> None:
    token(pump, "web", "*")
    gateway = gateways(a2a="http://agents.example")
    for path in ("/v1/outside/x", "/v1/turns/x", "/a2a/gate/x", "/a2a/../v1/outside/x"):
        answer = gateway.http.post(f"{path}/.well-known/agent-card.json", json={"result": 1})
        problem(answer, 401, "unauthorized")
    assert gateway.http.get("/a2a/gate/.well-known/agent-card.json").status_code == 200


def test_an_origin_that_is_no_address_is_a_foreign_one(gateway: GatewayThread) -> None:
    for origin in ("http://[", "null", ""):
        problem(gateway.http.get("/v1/approvals", headers={"Origin": origin}), 403, "foreign-origin")


def test_who_cannot_wait_is_told_of_the_turn_that_was_accepted(gateways: Gateways, pump: Pump) -> None:
    handle = pump.submit("s1", "hello")
    gateway = gateways(streams_a_caller=1)
    with gateway.http.stream("GET", f"/v1/turns/{handle.turn_id}/events"):
        told = gateway.http.post(
            "/v1/turns", json={"session_id": "s2", "user_message": "hello"}, headers={"Prefer": "wait=5"}
        )
    assert told.status_code == 202
    assert told.headers["location"] == f"/v1/turns/{told.json()['turn_id']}"


def test_a_stream_ends_when_its_token_is_revoked(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokens.__init__, "__defaults__", (0.0, 0.0))  # a check is believed for no time
    headers = token(pump, "web", "acme:", Verb.READ)
    handle = pump.submit("acme:1", "hello")  # nobody runs it: nothing happens
    gateway = gateways(heartbeat_s=0.05)
    with gateway.http.stream("GET", f"/v1/turns/{handle.turn_id}/events", headers=headers) as stream:
        lines = stream.iter_lines()
        assert any(line.startswith("data:") for line in lines)
        Tokens(pump.wiring.store).revoke(headers["Authorization"].removeprefix("Bearer "))
        assert [line for line in lines if line.startswith("retry:")]  # and then it is over
    problem(gateway.http.get(f"/v1/turns/{handle.turn_id}/events", headers=headers), 401, "unauthorized")


GIVEN: dict[str, Any] = {
    "model": "gpt-9",
    "provider": "openai",
    "system_prompt": "Obey.",
    "skill_context": "Obey.",
    "cwd": "/",
    "limits": {"max_steps": 1},
    "options": {"temperature": 0},
}


def test_how_a_turn_runs_is_said_by_the_brain_or_by_who_may(gateways: Gateways, pump: Pump) -> None:
    plain, free = (
        token(pump, "plain", "acme:", Verb.SUBMIT),
        token(pump, "free", "acme:", Verb.SUBMIT, Verb.CONFIGURE),
    )
    gateway = gateways()
    said = {"session_id": "acme:1", "user_message": "hello"}
    assert set(GIVEN) == CONFIGURE_OPTIONS
    for option, value in GIVEN.items():
        answer = gateway.http.post("/v1/turns", json={**said, option: value}, headers=plain)
        assert option in problem(answer, 403, "forbidden")["detail"]
    nothing = {**said, **dict.fromkeys(GIVEN), "metadata": {"order": 1}, "output_schema": {"type": "string"}}
    assert gateway.http.post("/v1/turns", json=nothing, headers=plain).status_code == 202
    assert pump.wiring.store.turns.list("acme:1", None, 9)[0].state == "accepted"
    known = {name: value for name, value in GIVEN.items() if name not in ("provider", "model")}
    answer = gateway.http.post("/v1/turns", json={**said, **known}, headers=free)
    assert answer.status_code == 202, answer.text
    request = pump.wiring.store.turns.request(answer.json()["turn_id"])
    assert request is not None
    assert (request.cwd, request.system_prompt) == ("/", "Obey.")


def test_two_tenants_may_use_one_key(gateways: Gateways, pump: Pump) -> None:
    gateway = gateways()
    made: list[str] = []
    for name in ("acme", "evil"):
        headers = token(pump, name, f"{name}:") | {"Idempotency-Key": "order-1"}
        body = {"session_id": f"{name}:1", "user_message": "hello"}
        first, again = (gateway.http.post("/v1/turns", json=body, headers=headers).json() for _ in range(2))
        assert first["created"]
        assert again["turn_id"] == first["turn_id"]
        made.append(first["turn_id"])
        other = gateway.http.post("/v1/turns", json=body | {"user_message": "bye"}, headers=headers)
        assert "k-" not in problem(other, 409, "submit-conflict")["detail"]
        foreign = gateway.http.post("/v1/turns", json=body | {"session_id": "them:1"}, headers=headers)
        said = problem(foreign, 404, "not-found")["detail"]
        assert said == f"session 'them:1': it is not one of this token's sessions, which begin with '{name}:'"
    assert len(set(made)) == 2


HOOK = """
from brainq.app.access import Caller, Verb

def authenticate(headers):
    user = headers.get("x-user")
    return Caller(user, (user + ":",), frozenset({Verb.READ, Verb.SUBMIT})) if user else None

async def later(headers):
    return authenticate(headers)

def odd(headers):
    return "ann"
"""


def test_an_app_may_say_itself_who_asks(gateways: Gateways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_auth.py").write_text(HOOK)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("authenticate", "later"):
        gateway = gateways(auth=f"own_auth:{name}")
        body = {"session_id": "ann:1", "user_message": "x"}
        problem(gateway.http.post("/v1/turns", json=body), 401, "unauthorized")
        assert gateway.http.post("/v1/turns", json=body, headers={"X-User": "ann"}).status_code == 202
        problem(gateway.http.post("/v1/turns", json=body, headers={"X-User": "bob"}), 404, "not-found")
    broken = gateways(auth="own_auth:odd")
    problem(broken.http.get("/v1/approvals"), 500, "bug")
    sys.modules.pop("own_auth", None)


def test_a_hook_that_is_not_there_is_named(pump: Pump) -> None:
    tokens = Tokens(pump.wiring.store)
    for hook in ("nowhere:authenticate", "json:nothing", "json:__name__"):
        with pytest.raises(SetupError, match="BRAINQ_HTTP_AUTH"):
            make_authenticator(pump.settings.model_copy(update={"http_auth": hook}), tokens)
    with pytest.raises(SetupError, match="BRAINQ_HTTP_AUTH"):
        load_settings(http_auth="a function")


def test_a_name_that_is_not_this_machines_is_not_served(gateway: GatewayThread) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "localhost.x"):
        problem(gateway.http.get("/v1/approvals", headers={"Host": host}), 421, "wrong-host")
    for host in ("localhost", "localhost:8321", "127.0.0.1", "[::1]:8321"):
        assert gateway.http.get("/v1/approvals", headers={"Host": host}).status_code == 200


def test_the_operator_names_hosts_and_origins(gateways: Gateways) -> None:
    gateway = gateways(hosts="turns.example", cors="https://shop.example, http://localhost:3000")
    host = {"Host": "turns.example"}
    assert gateway.http.get("/v1/approvals", headers=host).status_code == 200
    problem(gateway.http.get("/v1/approvals"), 421, "wrong-host")
    asked = {**host, "Origin": "https://shop.example"}
    answer = gateway.http.get("/v1/approvals", headers=asked)
    assert answer.headers["access-control-allow-origin"] == "https://shop.example"
    preflight = {
        **asked,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "idempotency-key, content-type, authorization, a2a-version",
    }
    assert gateway.http.options("/v1/turns", headers=preflight).status_code == 200
    with pytest.raises(SetupError, match="BRAINQ_HTTP_CORS"):
        load_settings(http_cors="shop.example")


SENT_BY_PAGES = (
    ("POST", "/v1/turns", "authorization,content-type,idempotency-key,prefer,traceparent,tracestate"),
    ("GET", "/v1/turns/x/events", "authorization,last-event-id"),
    ("HEAD", "/v1/turns/x/events", "authorization"),
    ("DELETE", "/v1/schedules/x", "authorization"),
    ("POST", "/a2a/gate", "a2a-version,authorization,content-type"),
    ("POST", "/agui", "accept,authorization,content-type"),
    ("POST", "/api/chat", "authorization,content-type,user-agent"),
    ("POST", "/mcp", "authorization,content-type,mcp-method,mcp-name,mcp-protocol-version,mcp-session-id"),
    ("POST", "/v1/chat/completions", "authorization,content-type,x-session-id"),
    ("POST", "/v1/responses", "authorization,content-type,idempotency-key,openai-organization,openai-project"),
    # The openai package for browsers.
    ("POST", "/v1/responses", "user-agent,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-timeout"),
    ("POST", "/v1/responses", "x-stainless-package-version,x-stainless-retry-count,x-stainless-helper-method"),
    ("POST", "/v1/responses", "x-stainless-runtime,x-stainless-runtime-version,x-stainless-poll-helper"),
)


def test_every_header_of_a_client_passes_a_preflight(gateways: Gateways) -> None:
    http = gateways(cors="https://shop.example").http
    for method, path, headers in SENT_BY_PAGES:
        asked = {
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers,
        }
        answer = http.options(path, headers=asked)
        assert answer.status_code == 200, f"{headers}: {answer.text}"
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        assert answer.headers["access-control-allow-headers"].lower() == headers
        foreign = http.options(path, headers={**asked, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in foreign.headers


def test_head_is_get_without_its_body(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    for path in ("/", "/healthz", "/readyz", "/v1/openapi.json", "/v1/turns", f"/v1/turns/{turn_id}"):
        got, head = gateway.http.get(path), gateway.http.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        # A live turn's milliseconds may have a digit more or less by then.
        assert abs(len(got.content) - int(head.headers["content-length"])) < 4, path
        assert head.headers["content-type"] == got.headers["content-type"], path
    # A stream that goes on is not waited for, and its place is free again.
    events = gateway.http.head(f"/v1/turns/{turn_id}/events")
    assert (events.status_code, events.content) == (200, b"")
    wait_until(lambda: len(gateway.gateway.streams) == 0, "the stream is over")
    assert gateway.http.head(f"/v1/turns/{'0' * 26}").status_code == 404


def test_a_method_that_a_route_lacks_is_told_those_it_has(gateway: GatewayThread) -> None:
    for method, path, allowed in (
        ("DELETE", "/v1/turns", "HEAD, GET, POST"),
        ("PUT", "/healthz", "HEAD, GET"),
        ("GET", "/mcp", "POST"),
        ("GET", "/v1/chat/completions", "POST"),
        ("POST", "/v1/schedules/x", "HEAD, GET, DELETE"),
        ("OPTIONS", "/v1/turns/x/cancel", "POST"),
    ):
        answer = gateway.http.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), f"{method} {path}"
        assert allowed in answer.text


def test_what_the_api_answers_is_neither_kept_nor_guessed_at(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    for path in ("/healthz", "/v1/turns", f"/v1/turns/{turn_id}", "/v1/turns/x", "/nowhere", "/v1/models"):
        headers = gateway.http.get(path).headers
        assert headers.get_list("x-content-type-options") == ["nosniff"], path
        assert headers.get_list("cache-control") == ["no-store"], path
    shell = gateway.http.get("/").headers
    assert shell.get_list("cache-control") == ["no-cache"], "what says it itself is left as it is"
    assert shell.get_list("x-content-type-options") == ["nosniff"]


def test_another_sites_page_may_not_ask(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    foreign = {"Origin": "https://evil.example"}
    answer = gateway.http.post(f"/v1/turns/{turn_id}/cancel", headers=foreign)
    problem(answer, 403, "foreign-origin")
    assert "access-control-allow-origin" not in answer.headers
    problem(gateway.http.post(f"/v1/turns/{turn_id}/cancel", headers={"Origin": "null"}), 403, "foreign-origin")
    assert gateway.http.get(f"/v1/turns/{turn_id}").json()["snapshot"]["cancel_requested"] is False
    own = {"Origin": gateway.url}
    assert gateway.http.get(f"/v1/turns/{turn_id}", headers=own).status_code == 200


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(gateways: Gateways) -> None:
    gateway = gateways(body_bytes=2_000)
    large = json.dumps({"session_id": "s1", "user_message": "x" * 3_000}).encode()
    as_json = {"Content-Type": "application/json"}
    problem(gateway.http.post("/v1/turns", content=large, headers=as_json), 413, "body-too-large")

    def pieces() -> Any:
        yield from (large[at : at + 500] for at in range(0, len(large), 500))

    problem(gateway.http.post("/v1/turns", content=pieces(), headers=as_json), 413, "body-too-large")
    fitting = {"session_id": "s1", "user_message": "x" * 1_000}
    assert gateway.http.post("/v1/turns", json=fitting).status_code == 202


def _connect(gateway: GatewayThread, **options: int) -> socket.socket:
    connection = socket.socket()
    for name, value in options.items():
        connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", gateway.settings.http_port))
    return connection


def test_a_request_with_two_lengths_is_refused_and_nothing_behind_it_is_read(gateways: Gateways, pump: Pump) -> None:
    token(pump, "web", "*")
    gateway = gateways()
    host = f"Host: 127.0.0.1:{gateway.settings.http_port}\r\n"
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    for path in ("/v1/turns", "/healthz"):
        with _connect(gateway) as smuggling:
            behind = f"0\r\n\r\nGET /healthz HTTP/1.1\r\n{host}\r\n"
            smuggling.sendall(f"POST {path} HTTP/1.1\r\n{host}{lengths}\r\n{behind}".encode())
            answer = b""
            while piece := smuggling.recv(65536):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert (b"two-lengths" in answer, answer.count(b"HTTP/1.1 ")) == (True, 1)


def test_a_path_with_a_slash_too_many_is_none(gateway: GatewayThread) -> None:
    problem(gateway.http.get("/v1/turns/"), 404, "no-such-route")


def test_the_document_is_written_once(gateway: GatewayThread) -> None:
    first, again = (gateway.http.get("/v1/openapi.json") for _ in range(2))
    assert first.headers["content-type"] == "application/json"
    assert first.content == again.content
    app: Any = gateway.server and gateway.server.config.app
    app.openapi_schema = None
    app.openapi = None
    assert gateway.http.get("/v1/openapi.json").content == first.content


def test_a_slow_sender_is_cut_off(gateways: Gateways) -> None:
    gateway = gateways(slow_s=0.3)
    head = f"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1:{gateway.settings.http_port}\r\n"
    with _connect(gateway) as of_head:
        of_head.sendall(head.encode())
        assert _is_cut_off(of_head)
    with _connect(gateway) as of_body:
        of_body.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
        answer = b""
        while piece := of_body.recv(65536):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"body-too-slow" in answer
    with _connect(gateway) as of_second:
        of_second.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{gateway.settings.http_port}\r\n\r\n".encode())
        assert of_second.recv(65536).startswith(b"HTTP/1.1 200 ")
        of_second.sendall(b"GET /hea")
        assert _is_cut_off(of_second)


def _is_cut_off(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True  # else the socket's own timeout raises


def test_a_slow_reader_is_cut_off_and_holds_up_nobody(gateways: Gateways, pump: Pump) -> None:
    gateway = gateways(slow_s=0.5)
    turn_id = submit(gateway, "x" * 400_000)
    pump.finish(pump.client.handle(turn_id))
    with _connect(gateway, SO_RCVBUF=4096) as slow:
        slow.sendall(f"GET /v1/turns/{turn_id}/transcript HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 8)
        wait_until(lambda: slow.recv(100), "it answers")
        assert gateway.http.get("/healthz").status_code == 200
        server = gateway.server
        assert server is not None
        # One connection is the test's own client, which is kept alive.
        wait_until(lambda: len(server.server_state.connections) <= 1, "the reader is cut off")


def test_a_caller_that_asks_too_often_waits(gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    busy, calm = token(pump, "busy", "*"), token(pump, "calm", "*")
    monkeypatch.setattr(caller_rates, "BURST_S", 1000.0)
    gateway = gateways(requests_s=0.005)  # five at once
    statuses = [gateway.http.get("/v1/approvals", headers=busy).status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    told = gateway.http.get("/v1/approvals", headers=busy)
    problem(told, 429, "too-many-requests")
    assert 100 <= int(told.headers["retry-after"]) <= 200
    assert gateway.http.get("/v1/approvals", headers=calm).status_code == 200
    guesses = [gateway.http.get("/v1/approvals").status_code for _ in range(6)]
    assert guesses == [401] * 5 + [429], "guessing is bounded by address"
    assert gateway.http.get("/healthz").status_code == 200


def invented() -> dict[str, str]:
    return {"Authorization": f"Bearer bq_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"}


def test_invented_tokens_are_bounded_before_sql_is_asked_and_keep_no_known_caller_out(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokens.__init__, "__defaults__", (0.0, 0.0))  # a check is believed for no time
    known, new = token(pump, "known", "*"), token(pump, "new", "*")
    monkeypatch.setattr(caller_rates, "BURST_S", 1000.0)
    gateway = gateways(requests_s=0.005, proxies="127.0.0.0/8")  # five at once
    assert gateway.http.get("/v1/approvals", headers=known).status_code == 200
    asked: list[str] = []
    get = TokenRows.get

    def counted(rows: TokenRows, token_id: str) -> Any:
        asked.append(token_id)
        return get(rows, token_id)

    monkeypatch.setattr(TokenRows, "get", counted)
    statuses = [gateway.http.get("/v1/approvals", headers=invented()).status_code for _ in range(8)]
    assert statuses == [401] * 5 + [429] * 3
    assert len(asked) == 5
    assert gateway.http.get("/v1/approvals", headers=known).status_code == 200
    wrong = {"Authorization": known["Authorization"][:-43] + "A" * 43}
    problem(gateway.http.get("/v1/approvals", headers=wrong), 429, "too-many-requests")
    assert gateway.http.get("/v1/approvals", headers=known).status_code == 200, "nor by its id"
    problem(gateway.http.get("/v1/approvals", headers=new), 429, "too-many-requests")
    elsewhere = {**new, "X-Forwarded-For": "10.9.9.9, 10.0.0.1"}
    assert gateway.http.get("/v1/approvals", headers=elsewhere).status_code == 200, "the proxy says who it is"


def test_whether_it_is_ready_is_not_asked_of_redis_and_sql_each_time(
    gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    pings: list[int] = []
    ping = gateway.gateway.client.ping

    async def counted() -> None:
        pings.append(1)
        await ping()

    monkeypatch.setattr(gateway.gateway.client, "ping", counted)
    with httpx.Client(base_url=gateway.url, verify=False) as another:
        began = time.monotonic()
        while time.monotonic() - began < 0.2:
            assert gateway.http.get("/readyz").status_code == another.get("/readyz").status_code == 200
    assert len(pings) <= 1 + (time.monotonic() - began)


def test_elsewhere_than_on_loopback_nobody_is_let_in_before_there_is_a_token(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.gateway.edge.authentication.KEPT_S", 0.0)
    monkeypatch.setattr("brainq.gateway.edge.request.CACHED_S", 0.0)
    gateway = gateways(host="0.0.0.0")
    assert "brainq token create" in gateway.gateway.authenticator.description
    assert gateway.http.get("/healthz").status_code == 200
    problem(gateway.http.get("/readyz"), 503, "setup")
    problem(gateway.http.get("/v1/approvals"), 401, "unauthorized")
    headers = token(pump, "web", "*")
    assert gateway.http.get("/readyz").status_code == 200
    assert gateway.http.get("/v1/approvals", headers=headers).status_code == 200
    problem(gateway.http.get("/v1/approvals"), 401, "unauthorized")


def test_long_work_keeps_nobody_out(gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = pump.submit("s1", "hello")
    headers, late = token(pump, "ops", "*"), token(pump, "late", "*")
    gateway = gateways(streams_a_caller=12)
    may_end, begun = threading.Event(), Counter[str]()

    def long(*_: Any) -> tuple[()]:
        begun["all"] += 1
        assert may_end.wait(60)
        return ()

    monkeypatch.setattr("brainq.gateway.rest.turn_control._retry_steps", long)

    def retry() -> int:
        path = f"/v1/turns/{handle.turn_id}/finalizer/retry"
        return gateway.http.post(path, headers=headers).status_code

    with ThreadPoolExecutor(12) as clients:
        asked = [clients.submit(retry) for _ in range(12)]
        wait_until(lambda: len(gateway.gateway.streams) == 12, "all of them wait")
        try:
            assert gateway.http.get("/v1/approvals", headers=late).status_code == 200
            assert gateway.http.post(f"/v1/turns/{handle.turn_id}/finalizer/retry", headers=headers).status_code == 429
            assert begun["all"] == LONG_WORK_THREADS
        finally:
            may_end.set()
        assert {each.result() for each in asked} == {200}


def test_open_streams_are_bounded_for_each_and_for_all(gateways: Gateways, pump: Pump) -> None:
    one, two = token(pump, "one", "*"), token(pump, "two", "*")
    gateway = gateways(streams=2, streams_a_caller=1)
    body = {"session_id": "s1", "user_message": "look"}
    turn_id = gateway.http.post("/v1/turns", json=body, headers=one).json()["turn_id"]
    url = f"/v1/turns/{turn_id}/events"
    with gateway.http.stream("GET", url, headers=one):
        told = gateway.http.get(url, headers=one)
        problem(told, 429, "too-many-streams")
        assert told.headers["retry-after"]
        waits = {**one, "Prefer": "wait=5"}
        problem(gateway.http.get(f"/v1/turns/{turn_id}/result", headers=waits), 429, "too-many-streams")
        with gateway.http.stream("GET", url, headers=two):
            three = token(pump, "three", "*")
            full = gateway.http.get(url, headers=three)
            problem(full, 503, "streams-full")
            assert full.headers["retry-after"]
    wait_until(lambda: len(gateway.gateway.streams) == 0, "their places are free")
    problem(gateway.http.get("/v1/turns/nobody/events", headers=one), 404, "not-found")
    assert len(gateway.gateway.streams) == 0


def test_a_gateway_without_threads_asks_to_come_again(gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(gateway.gateway.client, "approvals", refused)
    problem(gateway.http.get("/v1/approvals"), 503, "short")
    monkeypatch.setattr(gateway.gateway.client, "submit", refused)
    body = {"session_id": "s1", "user_message": "x"}
    told = problem(gateway.http.post("/v1/turns", json=body, headers={"Idempotency-Key": "k1"}), 503, "unreachable")
    assert told["request_key"] == "k1"


def test_a_bug_is_told_by_an_id_that_the_log_has_and_by_nothing_else(
    gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(gateway.gateway.client, "approvals", broken)
    with caplog.at_level("ERROR", logger="brainq"):
        told = problem(gateway.http.get("/v1/approvals"), 500, "bug")
    assert told["problem_id"] in caplog.text
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text + json.dumps(told)


def test_redis_that_is_away_is_told_with_the_key_to_ask_again(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    from brainq.errors import Unreachable

    gateway = gateways()

    async def away(*_: Any, **__: Any) -> None:
        raise Unreachable("Redis does not answer", request_key="derived")

    monkeypatch.setattr(gateway.gateway.client, "submit", away)
    body = {"session_id": "s1", "user_message": "x"}
    answer = gateway.http.post("/v1/turns", json=body, headers={"Idempotency-Key": "order-9"})
    assert problem(answer, 503, "unreachable")["request_key"] == "order-9"
    assert answer.headers["retry-after"]
    unnamed = gateway.http.post("/v1/turns", json=body)
    assert problem(unnamed, 503, "unreachable")["request_key"] not in ("", "derived")
    monkeypatch.setattr(gateway.gateway.client, "ping", away)
    assert gateway.http.get("/healthz").status_code == 200
    problem(gateway.http.get("/readyz"), 503, "unreachable")


def test_the_local_caller_may_do_everything() -> None:
    assert Caller("local", ("*",), frozenset(Verb)) == LOCAL_CALLER
