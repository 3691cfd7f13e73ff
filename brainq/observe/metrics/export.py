"""Sending a process's metrics over OTLP, where its environment wants them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from brainq.observe import telemetry_names as names
from brainq.observe.logs import logger
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.metrics.seen import Series, series_of
from brainq.observe.otel_settings import Wanted, metrics_wanted
from brainq.observe.otel_setup import NEEDS_EXTRA, is_installed, resource_of
from brainq.observe.outage import Outage
from brainq.observe.urls import without_password

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource

log = logger("brainq.telemetry")

EVERY_MS = 60_000.0  # the standard's
STOP_S = 3.0

Read = Callable[[], Sequence[Series]]


def counted_here() -> list[Series]:
    """What this process counted since it began."""
    return series_of(COUNTERS.totals(), ())


def start_metrics(role: str, read: Read = counted_here) -> Callable[[], None]:
    """Send what `read` gives every OTEL_METRIC_EXPORT_INTERVAL milliseconds, and once more at the end.

    Returns what sends the rest when the process stops, in STOP_S at most. Never raises: telemetry stops no worker.
    """
    try:
        wanted = metrics_wanted()
        if wanted.exporter == "none":
            return _nothing
        if not is_installed():
            log.warning(NEEDS_EXTRA)
            return _nothing
        sender = Sender(_exporter(wanted), role, read, every_s())
        sender.start()
        log.info("metrics are sent", to=without_password(wanted.where) or wanted.exporter)
        return sender.stop
    except Exception as failure:
        log.error("no metrics over OTLP: their setup failed", failure=failure)
        return _nothing


def every_s() -> float:
    """How often, as the standard's variable says; what is no number above 0 is left alone."""
    try:
        asked = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", EVERY_MS))
    except ValueError:
        asked = EVERY_MS
    return (asked if asked > 0 else EVERY_MS) / 1000


class Sender:
    """A thread that sends again and again."""

    def __init__(self, exporter: MetricExporter, role: str, read: Read, every_s: float) -> None:
        self._exporter = exporter
        self._resource = _resource(role)
        self._read = read
        self._every_s = every_s
        self._began_ns = time.time_ns()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="brainq-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send once more; an exporter that is trying again is not waited for."""
        self._stopping.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        outage = Outage(log, "sending metrics")
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

        from brainq.observe.metrics.otlp import data_of

        found = self._read()
        if not found:
            return
        said = self._exporter.export(data_of(found, self._resource, self._began_ns, time.time_ns()))
        if said is not MetricExportResult.SUCCESS:
            raise ConnectionError("the collector did not take them")


def _resource(role: str) -> Resource:
    """Each process sends streams of its own, which must not be taken for another's."""
    from opentelemetry.sdk.resources import Resource

    return resource_of(role).merge(Resource({names.INSTANCE: COUNTERS.process}))


def _exporter(wanted: Wanted) -> MetricExporter:
    if wanted.exporter == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

        return ConsoleMetricExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


def _nothing() -> None:
    """There is nothing to send."""
