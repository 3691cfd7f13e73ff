"""The export of a process's metrics over OTLP, if its environment requests it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from brainq.runtime.observe import otel_setup
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.metrics.counters import COUNTERS, Series, collect_series
from brainq.runtime.observe.threads import KeptThread
from brainq.runtime.text.service_url import without_password

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource

log = logger("brainq.telemetry")
EVERY_MS = 60_000.0  # the standard's default
STOP_S = 3.0
ReadSeries = Callable[[], Sequence[Series]]


def process_series() -> list[Series]:
    return collect_series(COUNTERS.totals(), ())


def start_metrics(role: str, read: ReadSeries = process_series) -> Callable[[], None]:
    """Send the result of `read` every OTEL_METRIC_EXPORT_INTERVAL milliseconds, and once more at the end.

    Returns a function that sends the rest when the process stops, within STOP_S. Never raises, because telemetry must
    not stop a worker.
    """
    try:
        wanted = otel_setup.metrics_exporter()
        if wanted.exporter == "none":
            if wanted.remedy:
                log.warning("no metrics are sent", why=wanted.why, remedy=wanted.remedy)
            return otel_setup.do_nothing
        if not otel_setup.is_installed():
            log.warning(otel_setup.NEEDS_EXTRA)
            return otel_setup.do_nothing
        sender = MetricsSender(_exporter(wanted), role, read, export_interval_s())
        sender.start()
        log.info("metrics are sent", to=without_password(wanted.where) or wanted.exporter)
        return sender.stop
    except Exception as failure:
        log.error("no metrics over OTLP: their setup failed", failure=failure)
        return otel_setup.do_nothing


def export_interval_s() -> float:
    """Return the interval of the standard's variable. A value that is not a positive number is ignored."""
    try:
        every_ms = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", EVERY_MS))
    except ValueError:
        every_ms = EVERY_MS
    return (every_ms if every_ms > 0 else EVERY_MS) / 1000


class MetricsSender:
    """A thread that sends repeatedly."""

    def __init__(self, exporter: MetricExporter, role: str, read: ReadSeries, every_s: float) -> None:
        self._exporter = exporter
        self._resource = _resource(role)
        self._read = read
        self._every_s = every_s
        self._began_ns = time.time_ns()
        self._thread = KeptThread("brainq-metrics", self._run)
        self._stopping = self._thread.stopping

    def start(self) -> None:
        """Start sending. If the thread is refused, that is logged, and `thread_problems` tries to start it again."""
        with suppress(RuntimeError):
            self._thread.ensure()

    def stop(self) -> None:
        """Flush once more, without waiting for an exporter that is retrying."""
        self._thread.stop(STOP_S)

    def _run(self, _stopping: threading.Event) -> None:
        outage = OutageLog(log, "sending metrics")
        is_last = False
        while not is_last:
            is_last = self._stopping.wait(self._every_s)
            try:
                self._send()
            except Exception as failure:
                outage.failed(failure)
            else:
                outage.worked()
        self._exporter.shutdown()

    def _send(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult

        from brainq.runtime.observe.metrics.otlp import otlp_data

        series = self._read()
        if not series:
            return
        outcome = self._exporter.export(otlp_data(series, self._resource, self._began_ns, time.time_ns()))
        if outcome is not MetricExportResult.SUCCESS:
            raise ConnectionError("the collector did not accept the metrics")


def _resource(role: str) -> Resource:
    """Return the resource of this process, whose streams must not be mistaken for another's."""
    from opentelemetry.sdk.resources import Resource

    return otel_setup.resource_of(role).merge(Resource({names.INSTANCE: COUNTERS.process}))


def _exporter(wanted: otel_setup.ExporterChoice) -> MetricExporter:
    if wanted.exporter == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

        return ConsoleMetricExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter(endpoint=wanted.where)
