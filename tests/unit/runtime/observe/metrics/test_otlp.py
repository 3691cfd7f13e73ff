"""Metrics over OTLP: what is sent, when it is, and that a collector that is away stops nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics import export
from brainq.runtime.observe.metrics.counters import Counters, collect_series
from brainq.runtime.observe.metrics.export import export_interval_s, process_series, start_metrics
from brainq.runtime.observe.otel_setup import metrics_exporter
from tests.support.counted import counted

__all__ = ["counted"]


class Collector:
    """Takes what is sent over HTTP."""

    def __init__(self) -> None:
        self.status = 200
        self.taken: list[ExportMetricsServiceRequest] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/metrics"
                if collector.status == 200:
                    collector.taken.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def metrics(self) -> dict[str, Any]:
        """Those of the last message, by name."""
        (resource,) = self.taken[-1].resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "brainq"
        assert scope.schema_url.endswith(m.CONVENTIONS)
        return {metric.name: metric for metric in scope.metrics}

    def resource(self) -> dict[str, str]:
        (resource,) = self.taken[-1].resource_metrics
        return {pair.key: pair.value.string_value for pair in resource.resource.attributes}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    found = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
    monkeypatch.setattr(export, "STOP_S", 60.0)
    yield found
    found.close()


def attributes(point: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in point.attributes}


def test_what_was_counted_is_sent_at_the_end_at_the_latest(collector: Collector, counted: Counters) -> None:
    counted.add(m.TURNS, "shop", "completed", "answered", by=3)
    stop = start_metrics("finalizer")
    for duration_s in (0.015, 0.5, 100.0):
        counted.observe(m.MODEL_CALLS, duration_s, "chat", "openai", "gpt-5", "", "step")
    stop()
    found = collector.metrics()
    turns = found["brainq.turns"]
    assert (turns.unit, turns.sum.is_monotonic, turns.sum.aggregation_temporality) == ("{turn}", True, 2)
    assert turns.sum.data_points[0].as_double == 3
    assert attributes(turns.sum.data_points[0]) == {"brain": "shop", "ending": "completed", "stop_reason": "answered"}
    (calls,) = found["gen_ai.client.operation.duration"].histogram.data_points
    assert found["gen_ai.client.operation.duration"].unit == "s"
    assert (calls.count, calls.sum) == (3, pytest.approx(100.515))
    assert list(calls.explicit_bounds) == list(m.MODEL_CALLS.bounds)
    assert len(calls.bucket_counts) == len(calls.explicit_bounds) + 1
    assert (calls.bucket_counts[1], calls.bucket_counts[-1]) == (1, 1)
    assert not calls.HasField("min")
    assert attributes(calls) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "brainq.purpose": "step",
    }, "an error type of none is left out"
    resource = collector.resource()
    assert resource["brainq.role"] == "finalizer"
    assert resource["service.instance.id"] == counted.process


def test_it_sends_again_and_again_all_since_the_beginning(
    collector: Collector, counted: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    sent = threading.Semaphore(0)

    def read() -> list[Any]:
        counted.add(m.STEPS, "shop")
        sent.release()
        return process_series()

    stop = start_metrics("coordinator", read)
    for _ in range(3):
        assert sent.acquire(timeout=60)
    stop()
    values = [
        metric.sum.data_points[0].as_double
        for message in collector.taken
        for metric in message.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "brainq.steps"
    ]
    assert len(values) >= 2
    assert values == sorted(values)
    starts = {
        metric.sum.data_points[0].start_time_unix_nano
        for message in collector.taken
        for metric in message.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "brainq.steps"
    }
    assert len(starts) == 1


def test_what_is_read_is_sent_as_gauges(collector: Collector) -> None:
    series = [each for each in collect_series({}, [(m.QUEUE_AGE, ("brainq.turns", "coordinator"), 7.0)]) if each.values]
    stop = start_metrics("gateway", lambda: series)
    stop()
    age = collector.metrics()["brainq.queue_oldest_age"]
    assert (age.unit, age.gauge.data_points[0].as_double) == ("s", 7)
    assert attributes(age.gauge.data_points[0]) == {"queue": "brainq.turns", "pool": "coordinator"}


def test_a_collector_that_refuses_keeps_nobody(collector: Collector, counted: Counters) -> None:
    counted.add(m.STEPS, "shop")
    collector.status = 400
    stop = start_metrics("serial")
    stop()
    assert collector.taken == []


def test_nothing_is_sent_unless_asked_to(monkeypatch: pytest.MonkeyPatch, counted: Counters) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    before = set(threading.enumerate())
    start_metrics("serial")()
    assert set(threading.enumerate()) <= before
    wanted = metrics_exporter({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"})
    assert wanted.exporter == "none"
    assert metrics_exporter({"OTEL_METRICS_EXPORTER": "otlp"}).where == "http://localhost:4318/v1/metrics"


@pytest.mark.parametrize(("said", "seconds"), [("500", 0.5), ("x", 60.0), ("0", 60.0)])
def test_how_often_is_the_standards_variable(monkeypatch: pytest.MonkeyPatch, said: str, seconds: float) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", said)
    assert export_interval_s() == seconds


def test_names_of_ours_lose_their_unit_and_keep_the_rest() -> None:
    named = {metric.name: metric.otel_name for metric in m.ALL}
    assert named["brainq_turn_duration_seconds"] == "brainq.turn_duration"
    assert named["brainq_redis_memory_limit_bytes"] == "brainq.redis_memory_limit"
    assert named["brainq_cost_usd"] == "brainq.cost"
    assert len(set(named.values())) == len(m.ALL)
    assert cast(Any, m.TOKEN_USAGE).otel_name == "gen_ai.client.token.usage"
