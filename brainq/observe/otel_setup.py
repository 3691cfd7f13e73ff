"""Traces of a process that brainq starts: by the standard's environment, unless the application has a provider."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from brainq.observe import telemetry_names as names
from brainq.observe.logs import logger
from brainq.observe.otel_context import host_tracer
from brainq.observe.otel_settings import Wanted, captures_content, traces_wanted
from brainq.observe.tracing import install, tracer
from brainq.observe.urls import without_password

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logger("brainq.telemetry")

NEEDS_EXTRA = "traces are wanted, and the extra is missing: pip install 'brainq[otel]'"
STOP_S = 3.0  # for what is still to be sent; a collector that is away keeps no worker from stopping
BATCH_MS = 1_000  # the standard's five seconds are what a killed worker takes along


def start_traces(role: str) -> Callable[[], None]:
    """Record this process's spans, where its environment or its application wants them.

    role   of the process, such as `coordinator`: part of the service's name, unless OTEL_SERVICE_NAME gives it one

    Returns what sends the rest when the process stops, in STOP_S at most. Never raises: telemetry stops no worker.
    """
    wanted = traces_wanted()
    if tracer() is not None:
        return _nothing
    try:
        host = host_tracer()
        if host is not None:
            install(host)
            return _nothing
        if wanted.exporter == "none":
            return _nothing
        if not is_installed():
            log.warning(NEEDS_EXTRA)
            return _nothing
        return _start(wanted, role)
    except Exception as failure:
        log.error("no traces: their setup failed", failure=failure)
        return _nothing


def is_installed() -> bool:
    """Whether the extra `otel` is."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _start(wanted: Wanted, role: str) -> Callable[[], None]:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    from brainq.observe.otel import OtelTracer

    exporter: SpanExporter
    if wanted.exporter == "console":
        exporter = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    provider = TracerProvider(resource=resource_of(role), shutdown_on_exit=False)
    delay_ms = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else BATCH_MS
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay_ms))
    trace.set_tracer_provider(provider)  # what the tools' libraries record goes the same way
    install(OtelTracer(provider, content=captures_content()))
    log.info("traces are sent", to=without_password(wanted.where) or wanted.exporter)
    return lambda: _stop(provider.shutdown)


def resource_of(role: str) -> Resource:
    """What a process is in telemetry. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come before ours."""
    from opentelemetry.sdk.resources import Resource

    return Resource({names.SERVICE: names.SCOPE, names.ROLE: role}).merge(Resource.create(_said()))


def _said() -> dict[str, str]:
    """`Resource.create` names a service that nobody named `unknown_service`, which would stand in place of ours."""
    named = os.environ.get("OTEL_SERVICE_NAME") or names.SERVICE in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {} if named else {names.SERVICE: names.SCOPE}


def _stop(shutdown: Callable[[], None]) -> None:
    """In a thread of its own: an exporter that is trying again is not waited for."""
    stopping = threading.Thread(target=shutdown, name="brainq-telemetry-stop", daemon=True)
    stopping.start()
    stopping.join(STOP_S)


def _nothing() -> None:
    """There is nothing to send."""
