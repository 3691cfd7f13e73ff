"""Spans by OpenTelemetry. Imported only where telemetry is on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from brainq.errors import NOT_SENT, ProviderError
from brainq.observe import telemetry_names as names
from brainq.observe.otel_setup import host_place, place_of
from brainq.observe.tracing import Attributes, Kind, TraceContext, Value, turn_context

_KINDS = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
_EMPTY = contexts.Context()
MS = 1_000_000  # in ns


class PresetIdGenerator(IdGenerator):
    """Ids that follow from a turn's, where one is given; else those of another generator."""

    def __init__(self, other: IdGenerator) -> None:
        self._other = other
        self._given = threading.local()

    @contextmanager
    def given(self, trace_id: int, span_id: int) -> Generator[None]:
        """In this thread, the next span has these; 0: any."""
        self._given.ids = trace_id, span_id
        try:
            yield
        finally:
            self._given.ids = 0, 0

    def generate_trace_id(self) -> int:
        return getattr(self._given, "ids", (0, 0))[0] or self._other.generate_trace_id()

    def generate_span_id(self) -> int:
        return getattr(self._given, "ids", (0, 0))[1] or self._other.generate_span_id()


class OtelSpan:
    """One span of OpenTelemetry's."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._token: Any = None

    @property
    def traceparent(self) -> str | None:
        return place_of(self._span.get_span_context()).traceparent

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(_known(attributes))

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        self._span.add_event(name, _known(attributes or {}))

    def fail(self, error_type: str) -> None:
        self._span.set_attribute(names.ERROR_TYPE, error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def __enter__(self) -> Self:
        self._token = contexts.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        contexts.detach(self._token)
        if kind is not None and kind is not GeneratorExit:
            word = error.kind if isinstance(error, ProviderError) else kind.__name__
            if word not in NOT_SENT:
                self.fail(word)
        self.end()


class OtelTracer:
    """Records by the tracer of a provider, which may be the host application's.

    content   prompts, replies, arguments and results are recorded, too
    """

    def __init__(self, provider: trace.TracerProvider, *, content: bool = False) -> None:
        self.content = content
        self._tracer = provider.get_tracer(names.SCOPE, version("brainq"), schema_url=names.SCHEMA_URL)
        # Each tracer is an object of its own, so that no other's ids are touched. One without a generator is no
        # SDK's, and records nothing.
        own: Any = self._tracer
        self._ids: PresetIdGenerator | None = None
        if isinstance(getattr(own, "id_generator", None), IdGenerator):
            own.id_generator = self._ids = PresetIdGenerator(own.id_generator)

    def turn(self, turn_id: str, traceparent: str | None) -> TraceContext:
        return turn_context(turn_id, traceparent, self._samples)

    def start(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: TraceContext | None = None,
        kind: Kind = "internal",
        span_id: int = 0,
        start_ms: int = 0,
        links: Sequence[TraceContext] = (),
    ) -> OtelSpan:
        def start() -> trace.Span:
            return self._tracer.start_span(
                name,
                None if parent is None else _context_of(parent),
                _KINDS[kind],
                _known(attributes),
                [Link(_span_context(link)) for link in links],
                start_ms * MS or None,
            )

        return OtelSpan(self._with_ids(0, span_id, start))

    def record(
        self,
        name: str,
        attributes: Attributes,
        *,
        at: TraceContext,
        parent: TraceContext | None,
        start_ms: int,
        end_ms: int,
        error_type: str = "",
    ) -> None:
        def start() -> trace.Span:
            return self._tracer.start_span(
                name,
                _EMPTY if parent is None else _context_of(parent),
                SpanKind.INTERNAL,
                _known(attributes),
                start_time=start_ms * MS,
            )

        span = self._with_ids(at.trace_id, at.span_id, start)
        if error_type:
            OtelSpan(span).fail(error_type)
        span.end(max(start_ms, end_ms) * MS)

    def current(self) -> TraceContext | None:
        return host_place()

    def _with_ids(self, trace_id: int, span_id: int, start: Callable[[], trace.Span]) -> trace.Span:
        if self._ids is None or not (trace_id or span_id):
            return start()
        with self._ids.given(trace_id, span_id):
            return start()

    def _samples(self, trace_id: int) -> bool:
        sampler: Any = getattr(self._tracer, "sampler", None)
        if sampler is None:
            return False
        return bool(sampler.should_sample(_EMPTY, trace_id, names.INVOKE_AGENT).decision.is_sampled())


def _span_context(place: TraceContext) -> SpanContext:
    return SpanContext(place.trace_id, place.span_id, is_remote=True, trace_flags=TraceFlags(place.flags))


def _context_of(place: TraceContext) -> contexts.Context:
    return trace.set_span_in_context(NonRecordingSpan(_span_context(place)), _EMPTY)


def _known(attributes: Attributes) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}
