"""Metrics in Prometheus' form. Only processes that show them import this, because it needs prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from socketserver import ThreadingMixIn
from threading import Event
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from brainq.runtime.observe.metrics.counters import Series
from brainq.runtime.observe.threads import KeptThread


def prometheus_text(series: Sequence[Series]) -> str:
    """Return the text format that every Prometheus reads."""
    return generate_latest(_registry(lambda: series)).decode()


def start_server(read: Callable[[], Sequence[Series]], port: int) -> tuple[WSGIServer, KeptThread]:
    """Serve the result of `read` at /metrics of 127.0.0.1, in a thread. Raises OSError if the port is in use."""
    metrics = make_wsgi_app(_registry(read))

    def page(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            return metrics(environ, start_response)
        is_root = environ["PATH_INFO"] == "/"
        start_response("200 OK" if is_root else "404 Not Found", [("Content-Type", "text/html; charset=utf-8")])
        return [b'<a href="/metrics">metrics</a>\n' if is_root else b"Not found: there is /metrics\n"]

    server = make_server("127.0.0.1", port, page, _ThreadingServer, _QuietHandler)

    def serve(stopping: Event) -> None:
        server.serve_forever()
        stopping.set()  # it was shut down

    thread = KeptThread("brainq-metrics-page", serve)
    thread.ensure()
    return server, thread


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


def _registry(read: Callable[[], Sequence[Series]]) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SeriesCollector(read))
    return registry


class _SeriesCollector(Collector):
    def __init__(self, read: Callable[[], Sequence[Series]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return map(_family, self._read())

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _family(series: Series) -> Metric:
    metric = series.metric
    match metric.kind:
        case "counter":
            family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "gauge":
            family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case "histogram":
            return _histogram(series)
    for labels, value in sorted(series.values.items()):
        family.add_metric(labels, value)
    return family


def _histogram(series: Series) -> HistogramMetricFamily:
    metric = series.metric
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    bounds = [*(f"{float(bound):g}" for bound in metric.bounds), "+Inf"]
    for labels, distribution in sorted(series.distributions.items()):
        below = list(zip(bounds, accumulate(distribution.counts), strict=True))
        family.add_metric(labels, buckets=below, sum_value=distribution.total)
    return family
