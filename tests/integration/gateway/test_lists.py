"""GET /v1/turns and /v1/sessions: pages of the caller's own."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.ids import child_turn_id
from brainq.contracts.turn import ParentCall, TurnRequest
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_tenants import submitted
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump


def listed(gateway: GatewayThread, headers: dict[str, str], what: str = "turns", **query: Any) -> dict[str, Any]:
    answer = gateway.http.get(f"/v1/{what}", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_lists_are_of_ones_own_sessions_page_by_page(gateway: GatewayThread, pump: Pump) -> None:
    acme, evil, all_ = token(pump, "acme", "acme:"), token(pump, "evil", "evil:"), token(pump, "all", "*")
    mine = [submitted(gateway, acme, f"acme:{number % 3}") for number in range(5)][::-1]
    theirs = submitted(gateway, evil, "evil:1", "save")
    pump.drain()

    first = listed(gateway, acme, limit=3)
    rest = listed(gateway, acme, limit=3, after=first["next"])
    assert [turn["turn_id"] for turn in first["turns"] + rest["turns"]] == mine
    assert (first["next"], rest["next"]) == (mine[2], None)
    assert {turn["state"] for turn in first["turns"]} == {"completed"}
    assert [turn["turn_id"] for turn in listed(gateway, evil)["turns"]] == [theirs]
    assert len(listed(gateway, all_)["turns"]) == 6
    assert [turn["turn_id"] for turn in listed(gateway, evil, state="parked")["turns"]] == [theirs]
    for query in ({"session": "acme:1"}, {"text": "acme"}, {"ending": "completed"}):
        assert listed(gateway, evil, **query) == {"turns": [], "next": None, "cells_away": []}

    sessions = listed(gateway, acme, "sessions", limit=2)
    assert [seen["session_id"] for seen in sessions["sessions"]] == ["acme:1", "acme:0"]
    more = listed(gateway, acme, "sessions", limit=2, after=sessions["next"])
    assert ([seen["session_id"] for seen in more["sessions"]], more["next"]) == (["acme:2"], None)
    assert listed(gateway, evil, "sessions", prefix="acme")["sessions"] == []
    assert [turn["turn_id"] for turn in listed(gateway, acme, strategy="direct_answer")["turns"]] == mine
    assert listed(gateway, acme, strategy="web_augmented") == {"turns": [], "next": None, "cells_away": []}
    record = gateway.http.get(f"/v1/turns/{mine[0]}/decision", headers=acme).json()["decision"]
    assert (record["turn_id"], record["strategy"]) == (mine[0], "direct_answer")


def test_a_search_finds_ones_own_alone_and_lists_are_sorted(gateway: GatewayThread, pump: Pump) -> None:
    acme, evil = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    mine = [submitted(gateway, acme, f"acme:{number}", f"report {number}") for number in range(2)]
    submitted(gateway, evil, "evil:1", "a report of theirs")
    pump.drain()
    assert [turn["turn_id"] for turn in listed(gateway, acme, search="REPORT", sort="oldest")["turns"]] == mine
    assert [turn["session_id"] for turn in listed(gateway, evil, search="report")["turns"]] == ["evil:1"]
    first = listed(gateway, acme, search="report", limit=1)
    assert (first["turns"][0]["turn_id"], first["next"]) == (mine[1], mine[1])


def test_another_tenants_parent_is_nobodys(gateway: GatewayThread, pump: Pump) -> None:
    acme, evil, all_ = token(pump, "acme", "acme:"), token(pump, "evil", "evil:"), token(pump, "all", "*")
    parent = submitted(gateway, acme, "acme:1", "hello")
    call = ParentCall(session_id="acme:1", turn_id=parent, call_id="c1-0")
    child = child_turn_id(parent, "c1-0")
    request = TurnRequest(turn_id=child, session_id="evil:1", user_message="go on", parent=call)
    pump.wiring.store.turns.accept(request)

    def told(headers: dict[str, str], path: str) -> Any:
        answer = gateway.http.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    for headers, known in ((evil, None), (all_, parent)):
        about = told(headers, f"/v1/turns/{child}/request")
        listed_ = next(t for t in told(headers, "/v1/turns")["turns"] if t["turn_id"] == child)
        newest = next(s for s in told(headers, "/v1/sessions")["sessions"] if s["session_id"] == "evil:1")["last_turn"]
        for seen in (about, listed_, newest):
            assert (seen["parent"] and seen["parent"]["turn_id"]) == known


def test_turns_are_found_by_metadata_and_tags_of_ones_own(gateway: GatewayThread, pump: Pump) -> None:
    acme, evil = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    said: dict[str, Any] = {"metadata": {"order": {"id": "A=1"}}, "prompt_tags": ["billing", "eu"]}
    handle = pump.client.submit("acme:1", "hello", **said)
    pump.client.submit("acme:2", "hello", prompt_tags=["billing"])
    queries: tuple[dict[str, Any], ...] = ({"metadata": "order.id=A=1"}, {"prompt_tags": ["billing", "eu"]})
    for query in queries:
        assert [turn["turn_id"] for turn in listed(gateway, acme, **query)["turns"]] == [handle.turn_id]
        assert listed(gateway, evil, **query)["turns"] == []


def test_a_caller_is_told_what_it_may(gateway: GatewayThread, pump: Pump) -> None:
    mine = token(pump, "acme", "acme:")
    answer = gateway.http.get("/v1/caller", headers=mine).json()
    assert (answer["name"], answer["sessions"]) == ("acme", ["acme:"])
    assert "read" in answer["verbs"]


def test_the_place_of_anothers_turn_is_as_one_of_nobodys(gateway: GatewayThread, pump: Pump) -> None:
    acme, evil = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    foreign = submitted(gateway, acme, "acme:1")
    for what in ("turns", "sessions"):
        told = [
            gateway.http.get(f"/v1/{what}", params={"after": turn}, headers=evil) for turn in (foreign, "nobodys-turn")
        ]
        assert [answer.status_code for answer in told] == [422, 422]
        assert told[0].text.replace(foreign, "IT") == told[1].text.replace("nobodys-turn", "IT")


@pytest.mark.parametrize(
    "query",
    [
        "strategy=guessed",
        "state=failed",
        "ending=queued",
        "stop_reason=tired",
        "failing=perhaps",
        "min_cost_usd=nan",
        "min_cost_usd=-1",
        "since=2026-01-01T00:00:00",
        "since=0001-01-01T00:00:00%2B14:00",
        "limit=0",
        "after=x",
        "metadata=customer",
        "metadata=",
        f"text={'x' * 129}",
        "session=a%20b",
    ],
)
def test_what_cannot_be_asked_for_is_422(gateway: GatewayThread, query: str) -> None:
    answer = gateway.http.get(f"/v1/turns?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == query.split("=")[0]
