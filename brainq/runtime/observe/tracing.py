"""Spans through OpenTelemetry's API: the tracer of this process, and places in a trace that are derived from a turn's
id.

Without a tracer provider every span is `INVALID_SPAN`, and entering it does nothing. Every process can derive the ids
of a turn's `invoke_agent` span and of its calls. So the spans of all processes are in one tree, even those that are
sent before their parent has ended, and a worker that dies loses only its own.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    INVALID_SPAN_CONTEXT,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from brainq.errors import NOT_SENT, ProviderError
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.text.failures import failure_name

MS = 1_000_000  # in ns
Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value | None]
"""Attributes of a span. None is left out."""
# Places in a trace: W3C trace context, and ids that are derived from the turn's own.
_W3C = TraceContextTextMapPropagator()
recorder: TurnTracer | None = None  # set by `record_spans` only
_content_excluded: ContextVar[bool] = ContextVar("brainq_content_excluded", default=False)


def read_traceparent(text: str | None) -> SpanContext | None:
    """Return the place that a `traceparent` names, or None for none, and for one that W3C requires readers to
    ignore."""
    if not text:
        return None
    place = trace.get_current_span(_W3C.extract({"traceparent": text.strip()})).get_span_context()
    return place if place.is_valid else None


def traceparent_of(place: SpanContext) -> str:
    """Return the place in W3C's form."""
    return f"00-{place.trace_id:032x}-{place.span_id:016x}-{place.trace_flags & TraceFlags.SAMPLED:02x}"


def current_place() -> SpanContext | None:
    """Return the place of the open span of this context, from any library, or None."""
    place = trace.get_current_span().get_span_context()
    return place if place.is_valid else None


def current_traceparent() -> str | None:
    place = current_place()
    return None if place is None else traceparent_of(place)


def turn_context(turn_id: str, traceparent: str | None, sampled: Callable[[int], bool]) -> SpanContext:
    """Return the place of the turn's `invoke_agent` span: in its producer's trace, or else in its own.

    sampled: decides by trace id whether a trace that begins here is recorded.
    """
    producer = read_traceparent(traceparent)
    if producer is not None:
        return place_at(producer.trace_id, _span_id(turn_id), producer.trace_flags)
    trace_id = int.from_bytes(_digest(f"trace {turn_id}")[:16]) or 1
    return place_at(trace_id, _span_id(turn_id), int(sampled(trace_id)))


def call_context(turn: SpanContext, turn_id: str, call_id: str, attempt: int) -> SpanContext:
    """Return the place of the `execute_tool` span of one attempt of a call. `turn` is that of its turn."""
    return place_at(turn.trace_id, call_span_id(turn_id, call_id, attempt), turn.trace_flags)


def call_span_id(turn_id: str, call_id: str, attempt: int) -> int:
    return _span_id(f"{turn_id} {call_id} {attempt}")


def place_at(trace_id: int, span_id: int, flags: int = TraceFlags.SAMPLED) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))


def _span_id(name: str) -> int:
    return int.from_bytes(_digest(f"span {name}")[:8]) or 1


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


class PresetIds:
    """An id generator for the SDK: the ids that a thread has set, or else those of another generator."""

    def __init__(self, other: Any) -> None:
        self._other = other
        self._preset = threading.local()

    @contextmanager
    def preset(self, trace_id: int, span_id: int) -> Generator[None]:
        """Use these ids for the next span in this thread. 0 means any."""
        self._preset.ids = trace_id, span_id
        try:
            yield
        finally:
            self._preset.ids = 0, 0

    def generate_trace_id(self) -> int:
        return getattr(self._preset, "ids", (0, 0))[0] or self._other.generate_trace_id()

    def generate_span_id(self) -> int:
        return getattr(self._preset, "ids", (0, 0))[1] or self._other.generate_span_id()

    def is_trace_id_random(self) -> bool:
        return False


class TurnTracer:
    """A tracer whose spans can have ids derived from a turn's. `tracer` is one of OpenTelemetry's SDK.

    content: whether prompts, replies, arguments and results are recorded, too.
    """

    def __init__(self, tracer: Any, *, content: bool) -> None:
        self.content = content
        self._tracer = tracer
        # Each tracer is a separate object, so that no other's ids are changed.
        self._ids = tracer.id_generator = PresetIds(tracer.id_generator)

    def turn(self, turn_id: str, traceparent: str | None) -> SpanContext:
        return turn_context(turn_id, traceparent, self._samples)

    def start(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: SpanContext | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        at: SpanContext = INVALID_SPAN_CONTEXT,
        start_ms: int = 0,
        links: Sequence[SpanContext] = (),
    ) -> Span:
        """Begin a span.

        parent: by default the open span of this context.
        at: its place, by default one below its parent with a random id.
        start_ms: since the epoch; 0 means now.
        """
        context = None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent), Context())
        with self._ids.preset(at.trace_id, at.span_id):
            return self._tracer.start_span(
                name, context, kind, _known(attributes), [Link(link) for link in links], start_ms * MS or None
            )

    def _samples(self, trace_id: int) -> bool:
        return bool(self._tracer.sampler.should_sample(Context(), trace_id, names.INVOKE_AGENT).decision.is_sampled())


def tracer() -> TurnTracer | None:
    """Return the tracer of this process, or None if tracing is off."""
    return recorder


def record_spans(provider: trace.TracerProvider | None, *, content: bool = False) -> bool:
    """Record this process's spans with the provider's tracer, or stop with None. Returns False if the provider is not
    an SDK's."""
    global recorder
    recorder = None if provider is None else tracer_of(provider, content=content)
    return recorder is not None


@cache
def tracer_of(provider: trace.TracerProvider, *, content: bool) -> TurnTracer | None:
    """Return the tracer, or None for a provider that is not an SDK's: its spans cannot have the ids of a turn."""
    theirs = provider.get_tracer(names.SCOPE, version("brainq"), schema_url=names.SCHEMA_URL)
    return TurnTracer(theirs, content=content) if hasattr(theirs, "id_generator") else None


def content_is_excluded() -> bool:
    """Return whether content is kept out of the spans that are opened here."""
    return _content_excluded.get()


def in_span(span: Span, *, redact: bool | None = None) -> AbstractContextManager[Span]:
    """Open a span as the parent of the spans that are opened in the body, and end it.

    An exception that leaves the body marks the span as an error, with its type. The message is not recorded, because it
    may contain content.

    redact: True to record no content in the body. None keeps the setting of the enclosing span.
    """
    return span if span is INVALID_SPAN else _in_span(span, redact)


@contextmanager
def _in_span(span: Span, redact: bool | None) -> Generator[Span]:
    token = _content_excluded.set(content_is_excluded() if redact is None else redact)
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    except GeneratorExit:
        raise
    except BaseException as error:
        error_type = error.kind if isinstance(error, ProviderError) else failure_name(error)
        if error_type not in NOT_SENT:
            fail_span(span, error_type)
        raise
    finally:
        _content_excluded.reset(token)
        end_span(span)


def note(span: Span, attributes: Attributes) -> None:
    """Add attributes to a span."""
    if span.is_recording():
        span.set_attributes(_known(attributes))


def fail_span(span: Span, error_type: str) -> None:
    """Mark a span as an error of this low-cardinality name."""
    if span.is_recording():
        span.set_attribute(names.ERROR_TYPE, error_type)
        span.set_status(Status(StatusCode.ERROR))


def end_span(span: Span) -> None:
    """End a span. Ending it again changes nothing."""
    if span.is_recording():
        span.end()


def _known(attributes: Attributes) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}
