"""/v1/stops: a token of all sessions stops anything, a tenant's what is its own."""

from __future__ import annotations

from brainq.access import Verb
from tests.integration.gateway.test_door import token
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

URL = "/v1/stops"


def test_a_tenants_token_stops_its_own_turns_alone(gateway: GatewayThread, pump: Pump) -> None:
    acme, bolt = token(pump, "acme", "acme:", Verb.OPERATE), token(pump, "bolt", "bolt:", Verb.OPERATE)
    root = token(pump, "root", "*", Verb.OPERATE)
    post = gateway.http.post
    everywhere = {"kind": "model", "name": "vendor/large", "mode": "forbid", "reason": "bills", "by": "ann"}
    refused = post(URL, json=everywhere, headers=acme)
    assert (refused.status_code, "name your tenant" in refused.json()["detail"]) == (403, True)
    assert post(URL, json={"kind": "tenant", "name": "bolt"}, headers=acme).status_code == 404
    mine = post(URL, json={"kind": "tool", "name": "order", "tenant": "acme", "reason": "wrong list"}, headers=acme)
    assert (mine.status_code, mine.json()["tenant"], mine.json()["mode"]) == (200, "acme:", "pause")
    assert post(URL, json=everywhere, headers=root).json()["by"] == "root: ann"
    shown = [stop["name"] for stop in gateway.http.get(URL, headers=bolt).json()["stops"]]
    assert shown == ["vendor/large"]
    assert len(gateway.http.get(URL, headers=acme).json()["stops"]) == 2
    assert gateway.http.delete(f"{URL}/model/vendor/large", headers=acme).status_code == 403
    assert gateway.http.delete(f"{URL}/tool/order?tenant=acme", headers=acme).json() == {"changed": True}
    assert gateway.http.delete(f"{URL}/model/vendor/large", headers=root).json() == {"changed": True}
    assert gateway.http.delete(f"{URL}/model/vendor/large", headers=root).status_code == 404


def test_a_forbidden_submit_is_a_problem_that_says_who_and_why(gateway: GatewayThread) -> None:
    forbidden = {"kind": "tenant", "name": "acme", "mode": "forbid", "reason": "unpaid", "by": "ann"}
    assert gateway.http.post(URL, json=forbidden).status_code == 200
    refused = gateway.http.post("/v1/turns", json={"session_id": "acme:1", "user_message": "x"})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:brainq:problem:turn-forbidden")
    assert refused.json()["detail"].startswith("tenant acme is forbidden by ann: unpaid;")
    assert gateway.http.post("/v1/turns", json={"session_id": "bolt:1", "user_message": "x"}).status_code in (200, 202)
