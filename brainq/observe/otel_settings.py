"""What OpenTelemetry's own environment says of traces. Pure, and imports nothing of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = frozenset({"true", "1", "span_only", "span_and_event"})


@dataclass(frozen=True, slots=True)
class TracesWanted:
    """Where spans go.

    exporter   `otlp`, `console` or `none`
    why        for people: what says so
    where      the endpoint of `otlp`
    """

    exporter: str
    why: str
    where: str = ""


def traces_wanted(environ: Mapping[str, str] = os.environ) -> TracesWanted:
    """By the standard's variables; without any of them, `none`: nobody is sent anything who did not ask for it."""

    def said(name: str) -> str:
        return environ.get(name, "").strip()

    if said("OTEL_SDK_DISABLED").lower() == "true":
        return TracesWanted("none", "OTEL_SDK_DISABLED is true")
    asked = said("OTEL_TRACES_EXPORTER").lower()
    own = said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    shared = said("OTEL_EXPORTER_OTLP_ENDPOINT")
    if asked == "none":
        return TracesWanted("none", "OTEL_TRACES_EXPORTER is none")
    if asked and asked not in ("otlp", "console"):
        return TracesWanted("none", f"OTEL_TRACES_EXPORTER is {asked!r}, and brainq knows otlp and console")
    if asked == "console":
        return TracesWanted("console", "OTEL_TRACES_EXPORTER is console")
    if not (asked or own or shared):
        return TracesWanted("none", "OTEL_EXPORTER_OTLP_ENDPOINT is not set")
    protocol = (said("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or said("OTEL_EXPORTER_OTLP_PROTOCOL")).lower()
    if protocol and protocol != "http/protobuf":
        return TracesWanted("none", f"the OTLP protocol is {protocol!r}, and brainq speaks http/protobuf")
    where = own or f"{(shared or 'http://localhost:4318').rstrip('/')}/v1/traces"
    why = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" if own else "OTEL_EXPORTER_OTLP_ENDPOINT"
    return TracesWanted("otlp", why if own or shared else "OTEL_TRACES_EXPORTER is otlp", where)


def captures_content(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether spans are to hold prompts, replies, arguments and results. By default they do not."""
    return environ.get(CAPTURE, "").strip().lower() in _YES
