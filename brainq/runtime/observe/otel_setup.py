"""The setup of OpenTelemetry by its own environment variables, or by the application's provider. Nothing of it is
imported unless it is used."""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.service_url import without_password

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

log = logger("brainq.telemetry")
CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURE_VALUES = frozenset({"true", "1", "span_only", "span_and_event"})
NEEDS_EXTRA = "traces are configured, but the extra is not installed: pip install 'brainq[otel]'"
STOP_S = 3.0  # for the remaining data: a collector that is down does not keep a worker from stopping
BATCH_MS = 1_000  # with the standard's five seconds, a killed worker would lose more


@dataclass(frozen=True, slots=True)
class ExporterChoice:
    """The destination of spans, or of metrics.

    exporter: `otlp`, `console` or `none`.
    why: the reason for the choice, for people.
    where: the endpoint of `otlp`.
    remedy: what to correct, if nothing is sent because of an invalid setting.
    """

    exporter: str
    why: str
    where: str = ""
    remedy: str = ""


def traces_exporter(environ: Mapping[str, str] = os.environ) -> ExporterChoice:
    return _exporter_choice("traces", environ)


def metrics_exporter(environ: Mapping[str, str] = os.environ) -> ExporterChoice:
    return _exporter_choice("metrics", environ)


def _exporter_choice(signal: Literal["traces", "metrics"], environ: Mapping[str, str]) -> ExporterChoice:
    """Return the choice by the standard's variables. Without any of them nothing is sent."""

    def value(name: str) -> str:
        return environ.get(name, "").strip()

    name = signal.upper()
    if value("OTEL_SDK_DISABLED").lower() == "true":
        return ExporterChoice("none", "OTEL_SDK_DISABLED is true")
    wanted = value(f"OTEL_{name}_EXPORTER").lower()
    own = value(f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT")
    shared = value("OTEL_EXPORTER_OTLP_ENDPOINT")
    if wanted == "none":
        return ExporterChoice("none", f"OTEL_{name}_EXPORTER is none")
    if wanted and wanted not in ("otlp", "console"):
        why = f"OTEL_{name}_EXPORTER is {wanted!r}, but brainq supports otlp and console"
        return ExporterChoice("none", why, remedy=f"set OTEL_{name}_EXPORTER=otlp")
    if wanted == "console":
        return ExporterChoice("console", f"OTEL_{name}_EXPORTER is console")
    if not (wanted or own or shared):
        return ExporterChoice("none", "OTEL_EXPORTER_OTLP_ENDPOINT is not set")
    protocol = (value(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or value("OTEL_EXPORTER_OTLP_PROTOCOL")).lower()
    if protocol and protocol != "http/protobuf":
        why = f"the OTLP protocol is {protocol!r}, but brainq supports http/protobuf"
        return ExporterChoice("none", why, remedy="set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and port 4318")
    variable = f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT" if own else "OTEL_EXPORTER_OTLP_ENDPOINT"
    try:
        where = otlp_address(own) if own else f"{otlp_base(shared or 'http://localhost:4318')}/v1/{signal}"
    except ValueError as wrong:
        return ExporterChoice("none", f"{variable}: {wrong}", remedy=f"set {variable}=http://HOST:4318")
    return ExporterChoice("otlp", variable if own or shared else f"OTEL_{name}_EXPORTER is otlp", where)


def otlp_address(text: str) -> str:
    """Return the URL to which spans or metrics are posted. An address without a scheme, as in `localhost:4318`, uses
    http. Raises ValueError with the reason if it cannot be one of OTLP over HTTP (OpenTelemetry's "OTLP Exporter
    Configuration")."""
    url = text if "://" in text else f"http://{text}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// is not http:// or https://, but brainq supports http/protobuf")
    if not parts.hostname or not re.fullmatch(r"[\w.:%-]+", parts.hostname):
        raise ValueError("the address names no host")
    if parts.port == 0:
        raise ValueError("the address names port 0")
    return url


def otlp_base(text: str) -> str:
    """Return the URL under which each signal has its path. The path of a signal at its end is removed."""
    return re.sub(r"(/v1/(traces|metrics|logs))?/*$", "", otlp_address(text).rstrip("/"))


def captures_content(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether spans include prompts, replies, arguments and results. By default they do not."""
    return environ.get(CAPTURE_VARIABLE, "").strip().lower() in _CAPTURE_VALUES


def start_traces(role: str) -> Callable[[], None]:
    """Record this process's spans, if its environment or its application requests it.

    Returns a function that sends the rest when the process stops, within STOP_S. Never raises, because telemetry must
    not stop a worker.

    role: the role of the process, such as `coordinator`. It is part of the service's name unless OTEL_SERVICE_NAME is
        set.
    """
    from opentelemetry.trace import get_tracer_provider

    from brainq.runtime.observe.tracing import record_spans, tracer

    wanted = traces_exporter()
    if tracer() is not None:
        return do_nothing
    try:
        if record_spans(get_tracer_provider(), content=captures_content()):  # the application's own
            return do_nothing
        if wanted.exporter == "none":
            if wanted.remedy:
                log.warning("no traces are sent", why=wanted.why, remedy=wanted.remedy)
            return do_nothing
        if not is_installed():
            log.warning(NEEDS_EXTRA)
            return do_nothing
        return _start(wanted, role)
    except Exception as failure:
        log.error("no traces: their setup failed", failure=failure)
        return do_nothing


def is_installed() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _start(wanted: ExporterChoice, role: str) -> Callable[[], None]:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    from brainq.runtime.observe.tracing import record_spans

    exporter: SpanExporter
    if wanted.exporter == "console":
        exporter = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(endpoint=wanted.where)
    provider = TracerProvider(resource=resource_of(role), shutdown_on_exit=False)
    delay_ms = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else BATCH_MS
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay_ms))
    trace.set_tracer_provider(provider)  # spans of the tools' libraries take the same way
    record_spans(provider, content=captures_content())
    log.info("traces are sent", to=without_password(wanted.where) or wanted.exporter)
    return lambda: stop_telemetry([provider.shutdown])


def resource_of(role: str) -> Resource:
    """Return the resource of a process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence."""
    from opentelemetry.sdk.resources import Resource

    return Resource({names.SERVICE: names.SCOPE, names.ROLE: role}).merge(Resource.create(_resource_attributes()))


def _resource_attributes() -> dict[str, str]:
    """Return the attributes. `Resource.create` would name a service without a name `unknown_service`, which would
    replace brainq's name."""
    named = os.environ.get("OTEL_SERVICE_NAME") or names.SERVICE in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return {} if named else {names.SERVICE: names.SCOPE}


def stop_telemetry(stops: Iterable[Callable[[], None]]) -> None:
    """Send the remaining data, all at once and within STOP_S, without waiting for an exporter that is retrying."""
    from brainq.runtime.observe.threads import (  # here, because `brainq --help` starts no threads
        StartedThread,
        start_thread,
    )

    until = time.monotonic() + STOP_S
    threads: list[StartedThread] = []
    for stop in stops:
        with suppress(RuntimeError):  # Unsent data is then lost, because the worker has more to do when it stops.
            threads.append(start_thread("brainq-telemetry-stop", stop))
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def do_nothing() -> None:
    """Stop telemetry that was never started."""
