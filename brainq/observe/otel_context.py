"""What a host application traces by itself, read from OpenTelemetry where the application uses it.

A program that never imported OpenTelemetry has no span open, and is not made to import it.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from brainq.observe.trace_context import TraceContext

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext, TracerProvider

    from brainq.observe.tracing import Tracer


def open_place() -> TraceContext | None:
    """The place of the span that is open in this context, of whoever it is; None: there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    found: SpanContext = trace.get_current_span().get_span_context()
    return place_of(found) if found.is_valid else None


def place_of(found: SpanContext) -> TraceContext:
    """A span's place, as ours."""
    return TraceContext(found.trace_id, found.span_id, int(found.trace_flags) & 1)


def host_tracer() -> Tracer | None:
    """Records by the provider that the host application has set; None where it has set none."""
    trace, sdk = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.sdk.trace")
    if trace is None or sdk is None:
        return None
    provider = trace.get_tracer_provider()
    return _tracer_of(provider) if isinstance(provider, sdk.TracerProvider) else None


@cache
def _tracer_of(provider: TracerProvider) -> Tracer:
    from brainq.observe.otel import OtelTracer
    from brainq.observe.otel_settings import captures_content

    return OtelTracer(provider, content=captures_content())
