"""/v1/bulk: begun by a request, looked at by others, of the caller's own turns alone."""

from __future__ import annotations

from typing import Any

from brainq.access import Verb
from tests.integration.gateway.test_door import token
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.wait import wait_until

URL = "/v1/bulk"


def report_of(gateway: GatewayThread, begun: Any, headers: Any) -> dict[str, Any]:
    """What came of it, once it is over."""
    assert begun.status_code == 202, begun.text
    where = begun.headers["location"]
    wait_until(lambda: gateway.http.get(where, headers=headers).json()["ended_at"] is not None, "it is over")
    return gateway.http.get(where, headers=headers).json()


def test_a_tenants_token_cancels_its_own_turns_and_is_told_of_them(gateway: GatewayThread, pump: Pump) -> None:
    acme = token(pump, "acme", "acme:", Verb.OPERATE, Verb.STEER)
    bolt = token(pump, "bolt", "bolt:", Verb.OPERATE, Verb.STEER)
    root = token(pump, "root", "*", Verb.OPERATE, Verb.STEER)
    for session in ("acme:1", "acme:2", "bolt:1"):
        pump.submit(session, "Go.")
    body = {"verb": "cancel", "where": "state=accepted", "reason": "wrong prices", "by": "ann", "rate": 500.0}
    counted = report_of(gateway, gateway.http.post(URL, json=body | {"dry_run": True}, headers=root), root)
    assert (counted["matched"], counted["done"]) == (3, 0)
    begun = gateway.http.post(URL, json=body, headers=acme)
    report = report_of(gateway, begun, acme)
    assert (report["state"], report["matched"], report["done"], report["plan"]["by"]) == ("done", 2, 2, "acme: ann")
    for answer in (gateway.http.get(f"{URL}/{report['id']}", headers=bolt), gateway.http.get(f"{URL}/nosuch")):
        assert answer.status_code in (401, 404)
    assert gateway.http.get(f"{URL}/{report['id']}", headers=root).status_code == 200
    acts = {(act.act, act.who, act.source) for act in pump.client.audit()}
    assert acts >= {("bulk", "acme: ann", "http"), ("cancel", "acme", "http")}
    assert gateway.http.delete(f"{URL}/{report['id']}", headers=acme).json() == {"changed": False}


def test_another_tenant_and_another_power_are_refused(gateway: GatewayThread, pump: Pump) -> None:
    acme = token(pump, "acme", "acme:", Verb.OPERATE, Verb.STEER)
    cancel = {"verb": "cancel", "where": "tenant=bolt"}
    assert gateway.http.post(URL, json=cancel, headers=acme).status_code == 404
    assert gateway.http.post(URL, json=cancel | {"verb": "approve"}, headers=acme).status_code == 403
    wrong = gateway.http.post(URL, json=cancel | {"where": "colour=red"}, headers=acme)
    assert (wrong.status_code, wrong.json()["field"]) == (422, "where")
