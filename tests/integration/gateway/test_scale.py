"""`GET /v1/scale`: the number as an autoscaler reads it, and for whom it is."""

from __future__ import annotations

from collections.abc import Callable

from brainq.access import Verb
from brainq.contracts.fleet import FleetWorker
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump


def test_a_token_for_metrics_reads_the_number_of_a_pool(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    keda = token(pump, "keda", "*", Verb.METRICS)
    http = gateways().http
    busy = FleetWorker(name="serial@a", pool="serial", threads=1, busy=1)
    pump.wiring.state.workers.announce("a-1", busy, 60)
    pump.wiring.state.workers.announce("b-1", busy.model_copy(update={"name": "serial@b"}), 60)
    found = http.get("/v1/scale?pool=serial&min=0", headers=keda)
    assert found.status_code == 200, found.text
    body = found.json()
    assert body["wanted"] == 2, "KEDA's valueLocation is `wanted`"
    assert body["pools"][0]["stop_first"][0] == {"name": "serial@a", "busy": 1, "draining": False}
    whole = http.get("/v1/scale", headers=keda).json()
    assert [pool["pool"] for pool in whole["pools"]] == ["coordinator", "parallel", "serial", "finalizer"]
    assert whole["wanted"] == sum(pool["wanted"] for pool in whole["pools"]) == 5
    assert http.get("/v1/scale?pool=serial&max=1", headers=keda).json()["wanted"] == 1
    assert http.get("/v1/scale?pool=finalizer&min=3", headers=keda).json()["wanted"] == 3


def test_others_are_told_nothing(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    operator = token(pump, "web", "*", *(verb for verb in Verb if verb is not Verb.METRICS))
    tenant, keda = token(pump, "acme", "acme:", *Verb), token(pump, "keda", "*", Verb.METRICS)
    http = gateways().http
    problem(http.get("/v1/scale"), 401, "unauthorized")
    problem(http.get("/v1/scale", headers=operator), 403, "forbidden")
    assert http.get("/v1/scale", headers=tenant).status_code == 404, "it is of all tenants"
    assert http.get("/v1/scale?pool=serial&min=0&build=1.5", headers=keda).json()["wanted"] == 0
    for query in ("pool=writers", "min=-1", "max=0", "max=2000", "min=3&max=2", "min=x"):
        assert http.get(f"/v1/scale?{query}", headers=keda).status_code == 422, query
