"""Spans, if anybody wants them: what the machines open, and who records it.

Where telemetry is off every span is `OFF`, which does nothing, and no module of OpenTelemetry is imported. Where it is
on, a tracer of `brainq.observe.otel` was installed when the process began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Protocol, Self

from brainq.observe.trace_context import TraceContext

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value | None]
"""What is None is left out."""

Kind = Literal["internal", "client", "server", "producer", "consumer"]


class Span(Protocol):
    """A span that has begun. As a context manager it is the parent of those that are opened in it, and ends with it.

    An exception that leaves it makes it an error by its type. Its message is not recorded: it may hold content.
    """

    @property
    def traceparent(self) -> str | None:
        """For others to go on from it; None where nothing is recorded."""
        ...

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        """Something happened in it, now."""
        ...

    def fail(self, error_type: str) -> None:
        """It is an error, of this low-cardinality name."""
        ...

    def end(self) -> None:
        """It is over; again changes nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Tracer(Protocol):
    """Records spans.

    content   whether prompts, replies, arguments and results are recorded, too
    """

    @property
    def content(self) -> bool: ...

    def turn(self, turn_id: str, traceparent: str | None) -> TraceContext:
        """The place of the turn's own span."""
        ...

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
    ) -> Span:
        """Begin a span.

        parent     by default whatever is open in this context
        span_id    a given one; 0: a random one
        start_ms   since the epoch; 0: now
        """
        ...

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
        """A span that is over, at its given place."""
        ...

    def current(self) -> TraceContext | None:
        """The place of what is open in this context."""
        ...


class _Off:
    traceparent: str | None = None

    def note(self, attributes: Attributes) -> None: ...
    def event(self, name: str, attributes: Attributes | None = None) -> None: ...
    def fail(self, error_type: str) -> None: ...
    def end(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


OFF: Span = _Off()
"""Every span where telemetry is off."""

_installed: Tracer | None = None


def tracer() -> Tracer | None:
    """Who records spans in this process; None: nobody."""
    return _installed


def place_here() -> TraceContext | None:
    """The place of the span that is open in this context; None where nothing is recorded."""
    return None if _installed is None else _installed.current()


def traceparent_here() -> str | None:
    """Its traceparent."""
    place = place_here()
    return None if place is None else place.traceparent


def install(recorder: Tracer | None) -> None:
    """Have `recorder` record this process's spans; None: nobody."""
    global _installed
    _installed = recorder
