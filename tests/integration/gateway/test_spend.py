"""`GET /v1/spend`: each caller sees what its own sessions have cost, as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Callable

from brainq.access import Verb
from brainq.contracts.model import Spend
from tests.integration.gateway.test_door import token
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump


def test_a_tenant_sees_its_own_spend(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    for tenant, usd in (("acme", 1.5), ("beta", 7.0)):
        turn = pump.client.submit(f"{tenant}:1", "hello").turn_id
        with pump.wiring.store.database.transaction() as connection:
            pump.wiring.store.spends.write(connection, turn, [Spend(step=1, model="m", cost_usd=usd)])
    http, mine, all_ = gateways().http, token(pump, "acme", "acme:", Verb.READ), token(pump, "ops", "*", Verb.READ)
    found = http.get("/v1/spend?by=tenant,model", headers=mine).json()
    assert (found["by"], found["total_usd"]) == (["tenant", "model"], 1.5)
    assert [(line["tenant"], line["calls"]) for line in found["lines"]] == [("acme:", 1)]
    assert http.get("/v1/spend", headers=all_).json()["total_usd"] == 8.5
    text = http.get("/v1/spend?by=tenant&format=csv", headers=mine)
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    assert "acme:,1," in text.text
    assert "beta:" not in text.text
    for query in ("by=week", "by=tool,model", "since=yesterday", "format=xml"):
        assert http.get(f"/v1/spend?{query}", headers=mine).status_code == 422, query
