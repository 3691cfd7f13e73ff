"""Budgets over HTTP: who sees which, who sets and raises them."""

from __future__ import annotations

from collections.abc import Callable

from brainq.access import Verb
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump


def test_an_operator_sets_and_a_decider_raises_and_a_tenant_sees_its_own(
    gateways: Callable[..., GatewayThread], pump: Pump
) -> None:
    ops, tenant = token(pump, "ops", "*", *Verb), token(pump, "acme", "acme:", *Verb)
    reader, http = token(pump, "web", "*", Verb.READ), gateways().http
    assert http.get("/v1/budgets", headers=ops).json() == {"budgets": []}
    for scope, usd in (("all", 10.0), ("tenant acme:", 2.0), ("brain gate", 3.0)):
        body = {"scope": scope, "per": "day", "usd": usd, "at_cap": "park"}
        assert http.put("/v1/budgets", json=body, headers=ops).json() == {
            "changed": True,
            "unpriced_models": ["scripted"],
        }
    found = http.get("/v1/budgets", headers=ops).json()["budgets"]
    assert [(one["scope"], one["usd"], one["parked"]) for one in found] == [
        ("all", 10.0, 0),
        ("brain gate", 3.0, 0),
        ("tenant acme:", 2.0, 0),
    ]
    assert [one["scope"] for one in http.get("/v1/budgets", headers=tenant).json()["budgets"]] == ["tenant acme:"]
    more = {"scope": "tenant acme:", "per": "day", "usd": 0.5}
    assert http.post("/v1/budgets/raise", json=more, headers=ops).json() == {"cap_usd": 2.5}
    assert http.post("/v1/budgets/raise", json=more, headers=tenant).status_code == 404, "it does not raise its own"
    problem(http.post("/v1/budgets/raise", json=more, headers=reader), 403, "forbidden")
    for wrong in ({**more, "scope": "brain none"}, {**more, "per": "week"}, {**more, "usd": -1.0}):
        assert http.post("/v1/budgets/raise", json=wrong, headers=ops).status_code == 422, wrong
