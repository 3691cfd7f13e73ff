"""What a caller learns of another tenant by asking about its own: nothing, by any id it may have guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from brainq.app.access import Tokens, Verb
from brainq.gateway.edge import caller_rates
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

Gateways = Callable[..., GatewayThread]
ABSENT = "nobodys-turn"


@pytest.fixture
def gateway(gateways: Gateways, pump: Pump) -> GatewayThread:
    token(pump, "anybody", "*")
    return gateways()


def submitted(gateway: GatewayThread, headers: dict[str, str], session: str, said: str = "hello") -> str:
    body = {"session_id": session, "user_message": said}
    answer = gateway.http.post("/v1/turns", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["turn_id"]


def rows_about(pump: Pump) -> dict[str, int]:
    with pump.wiring.store.engine.connect() as connection:
        tables = ("turns", "inputs", "brakes", "approvals", "schedules", "memories")
        return {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in tables}


def test_ids_of_another_tenant_inside_ones_own_session_are_as_ids_of_nobody(gateway: GatewayThread, pump: Pump) -> None:
    theirs, mine = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    foreign = submitted(gateway, theirs, "acme:1", "save")
    waits = submitted(gateway, theirs, "acme:1", "then this")
    own = submitted(gateway, mine, "evil:1")
    pump.drain()
    hold = gateway.http.post(f"/v1/turns/{foreign}/holds", headers=theirs).json()["id"]
    flag = gateway.http.post("/v1/sessions/acme:1/flags", headers=theirs).json()["id"]
    own_later = submitted(gateway, mine, "evil:1")
    newer = submitted(gateway, theirs, "acme:2")
    pump.drain()
    before = rows_about(pump)

    guessed = {"TURN": foreign, "NEWER": newer, "WAITS": waits, "HOLD": hold, "FLAG": flag}
    nobodys = dict.fromkeys(guessed, ABSENT)

    def told(ids: dict[str, str], method: str, path: str, live: str) -> tuple[int, str]:
        """What is answered, without the ids that were asked for."""
        for name, found in ids.items():
            path, live = path.replace(name, found), live.replace(name, found)
        body = {"text": "x", "expected_turn_id": live} if live else None
        answer = gateway.http.request(method, path, headers=mine, json=body)
        said = answer.text
        for found in ids.values():
            said = said.replace(found, "IT")
        return answer.status_code, said

    for method, path, live in (
        ("GET", "/v1/sessions/evil:1/history?after=TURN", ""),
        ("GET", "/v1/sessions/evil:1/history?after=NEWER", ""),
        ("DELETE", "/v1/sessions/evil:1/waiting/TURN", ""),
        ("DELETE", "/v1/sessions/evil:1/waiting/WAITS", ""),
        ("DELETE", "/v1/sessions/evil:1/flags/FLAG", ""),
        ("DELETE", f"/v1/turns/{own}/holds/HOLD", ""),
        ("GET", f"/v1/turns/{own}/calls?after=TURN-c1-0", ""),
        ("POST", "/v1/sessions/evil:1/input", "TURN"),
        ("POST", f"/v1/turns/{own}/input", "TURN"),
    ):
        of_acme, of_nobody = (told(ids, method, path, live) for ids in (guessed, nobodys))
        assert of_acme == of_nobody, f"{method} {path}"
    assert rows_about(pump) == before
    standing = gateway.http.get(f"/v1/turns/{foreign}", headers=theirs).json()
    assert (standing["state"], standing["snapshot"]["cancel_requested"]) == ("parked", False)
    session = gateway.http.get("/v1/sessions/acme:1", headers=theirs).json()
    assert ([turn["turn_id"] for turn in session["waiting"]], session["flags"]) == ([waits], [flag])
    own_page = gateway.http.get(f"/v1/sessions/evil:1/history?after={own_later}", headers=mine).json()
    assert [turn["turn_id"] for turn in own_page["turns"]] == [own], "of its own turns pages go on"


def test_tokens_that_let_nobody_in_are_answered_alike(gateway: GatewayThread, pump: Pump) -> None:
    tokens = Tokens(pump.wiring.store)
    revoked, expired, good = (tokens.create(name, ["*"], list(Verb), 3600) for name in "abc")
    tokens.revoke(revoked.row.token_id)
    with pump.wiring.store.engine.connect() as connection:
        update = "UPDATE tokens SET expires_at = created_at WHERE token_id = :id"
        connection.execute(text(update), {"id": expired.row.token_id})
    wrong = good.text[:16] + "A" * 43
    answers = [
        gateway.http.get("/v1/approvals", headers={"Authorization": f"Bearer {given}"})
        for given in (revoked.text, expired.text, wrong, f"bq_{'0' * 12}_{'A' * 43}", "nonsense", good.text)
    ]
    assert [answer.status_code for answer in answers] == [401] * 5 + [200]
    assert len({answer.content for answer in answers[:5]}) == 1


def test_no_token_is_in_a_log(gateway: GatewayThread, pump: Pump, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        made = Tokens(pump.wiring.store).create("acme", ["acme:"], ["read"])
        for given in (made.text, made.text[:-1] + "~", "bq_" + made.text):
            gateway.http.get("/v1/approvals", headers={"Authorization": f"Bearer {given}"})
            gateway.http.get(f"/v1/turns/{given}", headers={"Authorization": f"Bearer {made.text}"})
    # The client's own lines have the paths that it asked for; so would uvicorn's access log, which is off.
    assert gateway.server is not None
    assert gateway.server.config.access_log is False
    others = ("httpx", "httpcore", "uvicorn.access")
    logged = "".join(line.getMessage() for line in caplog.records if not line.name.startswith(others))
    assert "answered" in logged, "the gateway logs its answers"
    assert made.text[16:-1] not in logged


def test_while_sql_is_away_nobody_is_let_in(gateway: GatewayThread, pump: Pump) -> None:
    headers = token(pump, "acme", "acme:")
    with pump.wiring.store.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE tokens RENAME TO away")
    answer = gateway.http.get("/v1/approvals", headers=headers)
    problem(answer, 503, "unreachable")
    assert answer.headers["retry-after"]
    with pump.wiring.store.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO tokens")
    assert gateway.http.get("/v1/approvals", headers=headers).status_code == 200


def test_one_tenants_requests_are_not_counted_for_another_of_the_same_name(
    gateways: Gateways, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_rates, "BURST_S", 1000.0)
    mine, theirs = token(pump, "web", "acme:"), token(pump, "web", "evil:")
    gateway = gateways(requests_s=0.002, streams_a_caller=1)  # two at once
    statuses = [gateway.http.get("/v1/approvals", headers=theirs).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert gateway.http.get("/v1/approvals", headers=mine).status_code == 200


def test_who_paused_a_session_is_told(gateway: GatewayThread, pump: Pump) -> None:
    mine = token(pump, "acme", "acme:")
    for session, body, said in (("acme:1", None, "by acme"), ("acme:2", {"reason": "Mia looks"}, "acme: Mia looks")):
        url = f"/v1/sessions/{session}"
        assert gateway.http.post(f"{url}/pause", json=body, headers=mine).json() == {"changed": True}
        assert gateway.http.get(url, headers=mine).json()["why_paused"] == said
        turn_id = submitted(gateway, mine, session)
        told = gateway.http.get(f"/v1/turns/{turn_id}/explain", headers=mine).json()["next"]
        assert f"({said}); `brainq resume {session}` lets it begin" in told


def test_a_decision_is_recorded_as_the_tenants_own(gateway: GatewayThread, pump: Pump) -> None:
    mine, theirs = token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    submitted(gateway, mine, "acme:1", "save")
    pump.drain()
    (approval,) = gateway.http.get("/v1/approvals", headers=mine).json()["approvals"]
    assert gateway.http.get("/v1/approvals", headers=theirs).json() == {"approvals": [], "next": None, "cells_away": []}
    problem(gateway.http.post(f"/v1/approvals/{approval['id']}/approve", headers=theirs), 404, "not-found")
    answer = gateway.http.post(f"/v1/approvals/{approval['id']}/approve", headers=mine).json()
    assert (answer["state"], answer["decided_by"]) == ("approved", "acme")
