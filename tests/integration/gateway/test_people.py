"""Talking to turns and sessions over HTTP: input with receipts, cancels, holds, approvals, results from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

from brainq import Memory
from tests.integration.gateway.conftest import given
from tests.integration.gateway.test_turns import problem, submit
from tests.support.gateways import GatewayThread
from tests.support.parts import MESSAGE, Extractor, brain_of, pump_of, run_turn
from tests.support.pump import Pump


def test_input_has_a_receipt_that_tells_what_became_of_it(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway, "hello")
    url = f"/v1/turns/{turn_id}/input"
    sent = {"text": "and this", "client_message_id": "m1", "expected_turn_id": turn_id}
    first, again = (gateway.http.post(url, json=sent).json() for _ in range(2))
    assert first == again
    assert (first["state"], first["turn_id"]) == ("accepted", turn_id)
    problem(gateway.http.post(url, json=sent | {"text": "other"}), 409, "submit-conflict")
    pump.finish(pump.client.handle(turn_id))
    told = gateway.http.get(f"{url}/m1").json()
    assert (told["state"], told["step"]) == ("consumed", 1)
    problem(gateway.http.get(f"{url}/m2"), 404, "not-found")
    stale = {"text": "late", "expected_turn_id": turn_id}
    problem(gateway.http.post("/v1/sessions/s1/input", json=stale), 409, "stale-turn")
    assert problem(gateway.http.post(url, json={"text": " "}), 422, "invalid-input")["field"] == "text"
    bounced = gateway.http.post(url, json={"text": "late", "client_message_id": "m3"}).json()
    assert bounced["state"] == "bounced"
    assert pump.finish(pump.client.handle(bounced["bounced_turn_id"])).text == "Read: late"


def test_a_cancelled_turn_ends_and_cancelling_again_changes_nothing(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    said = gateway.http.post(f"/v1/turns/{turn_id}/cancel", json={"reason": "never mind"}).json()
    assert said["cancelled"] in ("requested", "cancelled")
    pump.finish(pump.client.handle(turn_id))
    assert gateway.http.get(f"/v1/turns/{turn_id}/result").json()["ending"] == "cancelled"
    assert gateway.http.post(f"/v1/turns/{turn_id}/cancel").json() == {"cancelled": "ended"}


def test_holds_are_placed_listed_and_released(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway, "order")
    url = f"/v1/turns/{turn_id}/holds"
    placed = gateway.http.post(url, json={"reason": "let me look", "expires_in_s": 60})
    assert placed.status_code == 201
    hold_id = placed.json()["id"]
    (standing,) = gateway.http.get(url).json()["holds"]
    assert (standing["id"], standing["reason"]) == (hold_id, "let me look")
    pump.drain()
    assert gateway.http.get(f"/v1/turns/{turn_id}").json()["state"] == "parked"
    assert gateway.http.delete(f"{url}/{hold_id}").json() == {"released": True}
    assert gateway.http.delete(f"{url}/{hold_id}").json() == {"released": False}
    assert gateway.http.get(url).json() == {"holds": []}
    for wrong in (0, -1, 1e12, "60", True):
        told = gateway.http.post(url, json={"expires_in_s": wrong})
        assert problem(told, 422, "invalid-input")["field"] == "expires_in_s"
    gateway.http.post(f"/v1/turns/{turn_id}/cancel")
    pump.finish(pump.client.handle(turn_id))
    problem(gateway.http.post(url), 422, "invalid-input")


def test_the_client_runs_a_tool_of_its_own(gateway: GatewayThread, pump: Pump) -> None:
    ring = {"name": "ring", "parameters": {"type": "object", "properties": {"bell": {"type": "string"}}}}
    turn_id = submit(gateway, "ring", client_tools=[ring], history=[{"role": "assistant", "content": "Yes?"}])
    pump.drain()
    url = f"/v1/turns/{turn_id}"
    (call,) = gateway.http.get(f"{url}/calls").json()["calls"]
    assert (call["tool"], call["park"], call["arguments"]) == ("ring", "client", {})
    given_to = f"{url}/calls/{call['id']}/result"
    assert gateway.http.post(given_to, json={"result": "ding 🔔"}).json() == {"taken": "settled"}
    problem(gateway.http.post(given_to, json={"error": "broken"}), 409, "result-refused")
    problem(gateway.http.post(f"{url}/calls/c7-0/result", json={"result": 1}), 404, "not-found")
    other = gateway.http.post(f"{url}/calls/another-c1-0/result", json={"result": 1})
    assert problem(other, 422, "invalid-input")["field"] == "call_id"
    assert pump.finish(pump.client.handle(turn_id)).text == "Read: ding 🔔"
    body = {"session_id": "s2", "user_message": "ring", "client_tools": [{"name": "look"}]}
    told = problem(gateway.http.post("/v1/turns", json=body), 422, "invalid-input")
    assert (told["field"], "of its own" in told["detail"]) == ("client_tools", True)


def asked(gateway: GatewayThread, pump: Pump, session: str = "s1") -> tuple[str, str]:
    """A turn that waits for an approval: the approval's url, and its hash."""
    turn_id = submit(gateway, "save", session)
    pump.drain()
    (found,) = gateway.http.get(f"/v1/turns/{turn_id}/approvals").json()["approvals"]
    return f"/v1/approvals/{found['id']}", found["args_hash"]


def test_an_approval_is_bound_to_its_arguments_and_decided_once(gateway: GatewayThread, pump: Pump) -> None:
    url, args_hash = asked(gateway, pump)
    (listed,) = gateway.http.get("/v1/approvals", params={"session": "s1"}).json()["approvals"]
    assert listed == gateway.http.get(url).json()
    assert gateway.http.get("/v1/approvals", params={"session": "s2"}).json() == {
        "approvals": [],
        "next": None,
        "cells_away": [],
    }
    problem(gateway.http.post(f"{url}/approve", json={"args_hash": "other"}), 409, "approval-decided")
    approved = gateway.http.post(f"{url}/approve", json={"args_hash": args_hash, "by": "ann"}).json()
    assert (approved["state"], approved["decided_by"]) == ("approved", "ann")
    assert gateway.http.post(f"{url}/approve").json()["state"] == "approved"
    told = problem(gateway.http.post(f"{url}/deny", json={"reason": "no"}), 409, "approval-decided")
    assert told["state"] == "approved"
    assert pump.finish(pump.client.handle(listed["turn_id"])).text == "Read: saved a"
    problem(gateway.http.get("/v1/approvals/nobody-c1-0"), 404, "not-found")


def test_a_call_is_denied_or_run_with_other_arguments(gateway: GatewayThread, pump: Pump) -> None:
    denied, _ = asked(gateway, pump, "s1")
    edited, seen = asked(gateway, pump, "s2")
    assert gateway.http.post(f"{denied}/deny", json={"reason": "not now"}).json()["state"] == "denied"
    wrong = gateway.http.post(f"{edited}/edit", json={"arguments": {"name": 7, "odd": 1}})
    problem(wrong, 422, "invalid-input")
    stale = gateway.http.post(f"{edited}/edit", json={"arguments": {"name": "b"}, "args_hash": "other"})
    problem(stale, 409, "approval-decided")
    wanted = {"arguments": {"name": "b"}, "by": "ann", "args_hash": seen}
    told = gateway.http.post(f"{edited}/edit", json=wanted).json()
    assert (told["state"], told["edited"]) == ("approved", True)
    turn_id = told["turn_id"]
    assert "saved b" in pump.finish(pump.client.handle(turn_id)).text


def test_a_result_from_outside_is_taken_once(gateway: GatewayThread, pump: Pump) -> None:
    given.clear()
    turn_id = submit(gateway, "order")
    pump.drain()
    url = f"/v1/outside/{given[0]}"
    assert gateway.http.post(url, json={"result": {"ok": True}}).json() == {"taken": "settled"}
    refused = problem(gateway.http.post(url, json={"result": 1}), 404, "token-refused")
    assert given[0] not in json.dumps(refused)
    assert '{"ok":true}' in pump.finish(pump.client.handle(turn_id)).text
    failing = submit(gateway, "named")
    pump.drain()
    own = f"/v1/outside/{quote('job/of s1', safe='')}"
    for wrong in ({}, {"result": 1, "error": "x"}, {"error": ""}):
        problem(gateway.http.post(own, json=wrong), 422, "invalid-input")
    assert gateway.http.post(own, json={"error": "lost it"}).json() == {"taken": "settled"}
    assert "lost it" in pump.finish(pump.client.handle(failing)).text


def test_a_session_is_looked_at_paused_and_talked_to(gateway: GatewayThread, pump: Pump) -> None:
    problem(gateway.http.get("/v1/sessions/s1"), 404, "not-found")
    looks = {"reason": "Mia looks"}
    assert gateway.http.post("/v1/sessions/s1/pause", json=looks).json() == {"changed": True}
    assert gateway.http.post("/v1/sessions/s1/pause").json() == {"changed": False}
    first, second = submit(gateway, "one"), submit(gateway, "two")
    seen = gateway.http.get("/v1/sessions/s1").json()
    assert (seen["live"], seen["is_paused"], seen["flags"]) == (None, True, [])
    assert seen["why_paused"] == "Mia looks"
    assert [turn["turn_id"] for turn in seen["waiting"]] == [first, second]
    assert gateway.http.delete(f"/v1/sessions/s1/waiting/{second}").json() == {"changed": True}
    assert gateway.http.post("/v1/sessions/s1/resume").json() == {"turn_id": first}
    assert gateway.http.post("/v1/sessions/s1/input", json={"text": "more"}).json()["turn_id"] == first
    assert gateway.http.post("/v1/sessions/s1/interrupt", json={"reason": "no"}).json() == {"turn_id": first}
    pump.finish(pump.client.handle(first))
    assert gateway.http.post("/v1/sessions/s1/interrupt").json() == {"turn_id": None}
    page = gateway.http.get("/v1/sessions/s1/history").json()["turns"]
    assert {turn["turn_id"] for turn in page} >= {first, second}
    (before,) = gateway.http.get("/v1/sessions/s1/history", params={"limit": 1, "after": page[1]["turn_id"]}).json()[
        "turns"
    ]
    assert before == page[0]


def test_a_readiness_flag_holds_the_next_turn(gateway: GatewayThread, pump: Pump) -> None:
    flag_id = gateway.http.post("/v1/sessions/s1/flags", json={"reason": "not yet"}).json()["id"]
    assert gateway.http.get("/v1/sessions/s1").json()["flags"] == [flag_id]
    turn_id = submit(gateway, "order")
    pump.drain()
    (hold,) = gateway.http.get(f"/v1/turns/{turn_id}/holds").json()["holds"]
    assert hold["kind"] == "readiness"
    assert gateway.http.delete(f"/v1/sessions/s1/flags/{flag_id}").json() == {"released": True}
    assert gateway.http.get(f"/v1/turns/{turn_id}/holds").json() == {"holds": []}


def test_a_compaction_is_a_turn(gateway: GatewayThread, pump: Pump) -> None:
    pump.finish(pump.client.handle(submit(gateway, "hello")))
    answer = gateway.http.post("/v1/sessions/s1/compact")
    assert answer.status_code == 202
    assert pump.finish(pump.client.handle(answer.json()["turn_id"])).ending == "completed"


def test_what_the_finalizer_gave_up_is_run_again(pumps: Callable[..., Pump]) -> None:
    extractor = Extractor(times=1)
    brain = brain_of(memory=Memory(extractor=extractor))
    pump = pump_of(pumps, brain)
    handle = run_turn(pump, MESSAGE)
    with GatewayThread(pump.settings, brain) as gateway:
        url = f"/v1/turns/{handle.turn_id}/finalizer/retry"
        unknown = gateway.http.post(url, json={"step": "nothing"})
        problem(unknown, 422, "invalid-input")
        told = gateway.http.post(url).json()
        assert told["steps"] == [{"step": "memory", "outcome": "done", "error": ""}]
        assert gateway.http.post(url).json()["steps"] == []


def test_a_compaction_that_is_asked_for_again_under_its_key_is_the_same(gateway: GatewayThread) -> None:
    key = {"Idempotency-Key": "tidy-1"}
    first, again = (gateway.http.post("/v1/sessions/s1/compact", headers=key).json() for _ in range(2))
    assert (first["created"], again["created"]) == (True, False)
    assert again["turn_id"] == first["turn_id"]
    other = gateway.http.post("/v1/turns", json={"session_id": "s1", "user_message": "x"}, headers=key)
    problem(other, 409, "submit-conflict")
