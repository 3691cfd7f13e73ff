"""What OpenTelemetry's own environment says of traces and metrics. Pure, and imports nothing of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = frozenset({"true", "1", "span_only", "span_and_event"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where spans, or metrics, go.

    exporter   `otlp`, `console` or `none`
    why        for people: what says so
    where      the endpoint of `otlp`
    """

    exporter: str
    why: str
    where: str = ""


def traces_wanted(environ: Mapping[str, str] = os.environ) -> Wanted:
    return _wanted("traces", environ)


def metrics_wanted(environ: Mapping[str, str] = os.environ) -> Wanted:
    return _wanted("metrics", environ)


def _wanted(signal: Literal["traces", "metrics"], environ: Mapping[str, str]) -> Wanted:
    """By the standard's variables; without any of them, `none`: nobody is sent anything who did not ask for it."""

    def said(name: str) -> str:
        return environ.get(name, "").strip()

    name = signal.upper()
    if said("OTEL_SDK_DISABLED").lower() == "true":
        return Wanted("none", "OTEL_SDK_DISABLED is true")
    asked = said(f"OTEL_{name}_EXPORTER").lower()
    own = said(f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT")
    shared = said("OTEL_EXPORTER_OTLP_ENDPOINT")
    if asked == "none":
        return Wanted("none", f"OTEL_{name}_EXPORTER is none")
    if asked and asked not in ("otlp", "console"):
        return Wanted("none", f"OTEL_{name}_EXPORTER is {asked!r}, and brainq knows otlp and console")
    if asked == "console":
        return Wanted("console", f"OTEL_{name}_EXPORTER is console")
    if not (asked or own or shared):
        return Wanted("none", "OTEL_EXPORTER_OTLP_ENDPOINT is not set")
    protocol = (said(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or said("OTEL_EXPORTER_OTLP_PROTOCOL")).lower()
    if protocol and protocol != "http/protobuf":
        return Wanted("none", f"the OTLP protocol is {protocol!r}, and brainq speaks http/protobuf")
    where = own or f"{(shared or 'http://localhost:4318').rstrip('/')}/v1/{signal}"
    why = f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT" if own else "OTEL_EXPORTER_OTLP_ENDPOINT"
    return Wanted("otlp", why if own or shared else f"OTEL_{name}_EXPORTER is otlp", where)


def captures_content(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether spans are to hold prompts, replies, arguments and results. By default they do not."""
    return environ.get(CAPTURE, "").strip().lower() in _YES
