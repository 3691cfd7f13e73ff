"""The spans that a test recorded, as a tree."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from brainq.runtime.observe.tracing import record_spans


@dataclass(frozen=True)
class SeenSpan:
    """One span as an exporter or a collector received it."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    events: tuple[str, ...] = ()
    links: tuple[int, ...] = ()
    is_error: bool = False
    start_ns: int = 0
    end_ns: int = 0


class Spans:
    """The spans that were recorded so far."""

    def __init__(self, spans: Iterable[SeenSpan]) -> None:
        self.all = tuple(spans)

    def __iter__(self):
        return iter(self.all)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def named(self, name: str) -> list[SeenSpan]:
        """Return the spans with this name, or whose name begins with it and a blank, in the order they began."""
        found = [span for span in self.all if span.name == name or span.name.startswith(f"{name} ")]
        return sorted(found, key=lambda span: span.start_ns)

    def one(self, name: str) -> SeenSpan:
        (span,) = self.named(name)
        return span

    def of_turn(self, turn_id: str) -> Spans:
        return Spans(span for span in self.all if span.attributes.get("brainq.turn.id") == turn_id)

    def orphans(self, *beyond: int) -> list[str]:
        """Return the names of spans whose parent was not recorded, except roots and children of spans in `beyond`."""
        known = {span.span_id for span in self.all} | {0, *beyond}
        return [span.name for span in self.all if span.parent_id not in known]

    def traces(self) -> set[int]:
        return {span.trace_id for span in self.all}


class Recorder:
    """A recorder in memory, which works like a worker's telemetry."""

    def __init__(self, *, content: bool = False, sampler: Any = None) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.content = content

    @property
    def spans(self) -> Spans:
        return Spans(_seen(span) for span in self._exporter.get_finished_spans())

    def text(self) -> str:
        """Return all spans as text, as an exporter would write them."""
        return "\n".join(span.to_json() for span in self._exporter.get_finished_spans())


@contextmanager
def recording(**options: Any) -> Generator[Recorder]:
    """Record the spans of this process in memory, in the context."""
    recorder = Recorder(**options)
    record_spans(recorder.provider, content=recorder.content)
    try:
        yield recorder
    finally:
        record_spans(None)
        recorder.provider.shutdown()


def _seen(span: Any) -> SeenSpan:
    return SeenSpan(
        name=span.name,
        trace_id=span.context.trace_id,
        span_id=span.context.span_id,
        parent_id=span.parent.span_id if span.parent is not None else 0,
        attributes=dict(span.attributes),
        events=tuple(event.name for event in span.events),
        links=tuple(link.context.span_id for link in span.links),
        is_error=not span.status.is_ok and span.status.is_unset is False,
        start_ns=span.start_time,
        end_ns=span.end_time,
    )


@contextmanager
def recording_everybody() -> Generator[Recorder]:
    """Record like `recording`, including the spans of libraries: the program's own provider is replaced in the
    context."""
    from opentelemetry import trace

    with recording() as recorder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", recorder.provider)
        yield recorder
