"""`GET /metrics`: for whom it is, and that it goes on telling while Redis is away."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from pydantic import SecretStr

from brainq.access import Verb
from brainq.gateway.edge.request import CACHED_S
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import Counters
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.counted import counted, read_by
from tests.support.gateways import GatewayThread
from tests.support.proxy import Proxy
from tests.support.pump import Pump
from tests.support.spans import recording_everybody
from tests.support.wait import wait_until

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
