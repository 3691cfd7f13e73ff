"""Operators' routes (stops, bulks, scale, spending, budgets, metrics): what they answer, and which callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from brainq.app.access import Verb
from brainq.contracts.fleet import FleetWorker
from brainq.contracts.model import Spend
from brainq.gateway.edge.request import CACHED_S
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import Counters
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.counted import counted, read_by
from tests.support.gateways import GatewayThread
from tests.support.proxy import Proxy
from tests.support.pump import Pump
from tests.support.spans import recording_everybody
from tests.support.wait import wait_until

STOPS = "/v1/stops"


def test_a_tenants_token_stops_its_own_turns_alone(gateway: GatewayThread, pump: Pump) -> None:
    acme, bolt = token(pump, "acme", "acme:", Verb.OPERATE), token(pump, "bolt", "bolt:", Verb.OPERATE)
    root = token(pump, "root", "*", Verb.OPERATE)
    post = gateway.http.post
    everywhere = {"kind": "model", "name": "vendor/large", "mode": "forbid", "reason": "bills", "by": "ann"}
    refused = post(STOPS, json=everywhere, headers=acme)
    assert (refused.status_code, "name your tenant" in refused.json()["detail"]) == (403, True)
    assert post(STOPS, json={"kind": "tenant", "name": "bolt"}, headers=acme).status_code == 404
    mine = post(STOPS, json={"kind": "tool", "name": "order", "tenant": "acme", "reason": "wrong list"}, headers=acme)
    assert (mine.status_code, mine.json()["tenant"], mine.json()["mode"]) == (200, "acme:", "pause")
    assert post(STOPS, json=everywhere, headers=root).json()["by"] == "root: ann"
    shown = [stop["name"] for stop in gateway.http.get(STOPS, headers=bolt).json()["stops"]]
    assert shown == ["vendor/large"]
    assert len(gateway.http.get(STOPS, headers=acme).json()["stops"]) == 2
    assert gateway.http.delete(f"{STOPS}/model/vendor/large", headers=acme).status_code == 403
    assert gateway.http.delete(f"{STOPS}/tool/order?tenant=acme", headers=acme).json() == {"changed": True}
    assert gateway.http.delete(f"{STOPS}/model/vendor/large", headers=root).json() == {"changed": True}
    assert gateway.http.delete(f"{STOPS}/model/vendor/large", headers=root).status_code == 404


def test_a_forbidden_submit_is_a_problem_that_says_who_and_why(gateway: GatewayThread) -> None:
    forbidden = {"kind": "tenant", "name": "acme", "mode": "forbid", "reason": "unpaid", "by": "ann"}
    assert gateway.http.post(STOPS, json=forbidden).status_code == 200
    refused = gateway.http.post("/v1/turns", json={"session_id": "acme:1", "user_message": "x"})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:brainq:problem:turn-forbidden")
    assert refused.json()["detail"].startswith("tenant acme is forbidden by ann: unpaid;")
    assert gateway.http.post("/v1/turns", json={"session_id": "bolt:1", "user_message": "x"}).status_code in (200, 202)


BULKS = "/v1/bulk"


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
    counted = report_of(gateway, gateway.http.post(BULKS, json=body | {"dry_run": True}, headers=root), root)
    assert (counted["matched"], counted["done"]) == (3, 0)
    begun = gateway.http.post(BULKS, json=body, headers=acme)
    report = report_of(gateway, begun, acme)
    assert (report["state"], report["matched"], report["done"], report["plan"]["by"]) == ("done", 2, 2, "acme: ann")
    for answer in (gateway.http.get(f"{BULKS}/{report['id']}", headers=bolt), gateway.http.get(f"{BULKS}/nosuch")):
        assert answer.status_code in (401, 404)
    assert gateway.http.get(f"{BULKS}/{report['id']}", headers=root).status_code == 200
    acts = {(act.act, act.who, act.source) for act in pump.client.audit()}
    assert acts >= {("bulk", "acme: ann", "http"), ("cancel", "acme", "http")}
    assert gateway.http.delete(f"{BULKS}/{report['id']}", headers=acme).json() == {"changed": False}


def test_another_tenant_and_another_power_are_refused(gateway: GatewayThread, pump: Pump) -> None:
    acme = token(pump, "acme", "acme:", Verb.OPERATE, Verb.STEER)
    cancel = {"verb": "cancel", "where": "tenant=bolt"}
    assert gateway.http.post(BULKS, json=cancel, headers=acme).status_code == 404
    assert gateway.http.post(BULKS, json=cancel | {"verb": "approve"}, headers=acme).status_code == 403
    wrong = gateway.http.post(BULKS, json=cancel | {"where": "colour=red"}, headers=acme)
    assert (wrong.status_code, wrong.json()["field"]) == (422, "where")


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


__all__ = ["counted"]


def test_a_token_for_metrics_reads_them_and_nothing_else(
    gateways: Callable[..., GatewayThread], pump: Pump, counted: Counters
) -> None:
    counted.add(m.STEPS, "gate", by=3)
    pump.wiring.state.metrics.flush(counted)
    prometheus = token(pump, "prometheus", "*", Verb.METRICS)
    others = token(pump, "web", "*", *(verb for verb in Verb if verb is not Verb.METRICS))
    tenant = token(pump, "acme", "acme:", *Verb)
    http = gateways().http
    found = http.get("/metrics", headers=prometheus)
    assert found.status_code == 200
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert read_by(found.text)("brainq_steps_total", brain="gate") == 3
    problem(http.get("/metrics", headers=others), 403, "forbidden")
    assert http.get("/metrics", headers=tenant).status_code == 404, "they are of all tenants"
    problem(http.get("/metrics"), 401, "unauthorized")
    for path in ("/v1/turns", "/v1/fleet", "/v1/approvals"):
        problem(http.get(path, headers=prometheus), 403, "forbidden")


def test_while_redis_is_away_it_says_so_and_goes_on_when_it_is_back(pump: Pump, redis_url: str) -> None:
    redis = urlsplit(redis_url)
    with Proxy((redis.hostname or "", redis.port or 0)) as proxy:
        away = SecretStr(f"redis://127.0.0.1:{proxy.port}/0")
        settings = pump.settings.model_copy(update={"redis_url": away})
        with GatewayThread(settings, pump.wiring.brains) as gateway:

            def up(service: str) -> float | None:
                answer = gateway.http.get("/metrics")
                assert answer.status_code == 200
                return read_by(answer.text)("brainq_up", service=service)

            assert (up("redis"), up("sql")) == (1, 1)
            proxy.go_away()
            wait_until(lambda: up("redis") == 0, f"an answer is older than {CACHED_S} s")
            assert up("sql") == 1
            proxy.come_back()
            wait_until(lambda: up("redis") == 1, "it is back")


def test_a_scrape_leaves_no_spans(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    prometheus = token(pump, "prometheus", "*", Verb.METRICS)
    with recording_everybody() as recorder:
        http = gateways().http
        for path in ("/metrics", "/healthz", "/readyz"):
            assert http.get(path, headers=prometheus).status_code == 200
    assert recorder.spans.names == []
