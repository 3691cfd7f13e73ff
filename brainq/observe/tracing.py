"""Tracing without OpenTelemetry: a turn's place in a trace, spans that the machines open, and the tracer that
may record them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

# Where a turn is in a trace: W3C trace context, and ids that follow from the turn's own.
#
# Whoever works on a turn knows, without asking anybody, the id of its `invoke_agent` span and those of its calls. So
# spans of any process are in one tree, also those that are sent before their parent has ended, and a worker that dies
# takes none but its own along.

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")

SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span's place: its trace, its id, and its flags (1: it is recorded)."""

    trace_id: int
    span_id: int
    flags: int = SAMPLED

    @property
    def traceparent(self) -> str:
        """As W3C writes it."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags & SAMPLED:02x}"


def read_traceparent(text: str | None) -> TraceContext | None:
    """The context of a `traceparent`; None for none, and for one that W3C tells its readers to ignore."""
    found = _FORM.fullmatch(text.strip()) if text else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceContext(int(trace_id, 16), int(span_id, 16), int(flags, 16) & SAMPLED)


def turn_context(turn_id: str, traceparent: str | None, sampled: Callable[[int], bool]) -> TraceContext:
    """The place of the turn's `invoke_agent` span: in its producer's trace, else in one of its own.

    `sampled` says of a trace id whether a trace that begins here is recorded.
    """
    producer = read_traceparent(traceparent)
    span_id = _span_id(turn_id)
    if producer is not None:
        return TraceContext(producer.trace_id, span_id, producer.flags)
    trace_id = int.from_bytes(_digest(f"trace {turn_id}")[:16]) or 1
    return TraceContext(trace_id, span_id, SAMPLED if sampled(trace_id) else 0)


def call_span_id(turn_id: str, call_id: str, attempt: int) -> int:
    """The id of the `execute_tool` span of one attempt of a call."""
    return _span_id(f"{turn_id} {call_id} {attempt}")


def _span_id(name: str) -> int:
    return int.from_bytes(_digest(f"span {name}")[:8]) or 1


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


# Spans, if anybody wants them: what the machines open, and who records it.
#
# Where telemetry is off every span is `OFF`, which does nothing, and no module of OpenTelemetry is imported. Where it
# is on, a tracer of `brainq.observe.otel` was installed when the process began.

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


class _NoSpan:
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


NO_SPAN: Span = _NoSpan()

"""Every span where telemetry is off."""

_installed: Tracer | None = None


def tracer() -> Tracer | None:
    """Who records spans in this process; None: nobody."""
    return _installed


def current_place() -> TraceContext | None:
    """The place of the span that is open in this context; None where nothing is recorded."""
    return None if _installed is None else _installed.current()


def current_traceparent() -> str | None:
    """Its traceparent."""
    place = current_place()
    return None if place is None else place.traceparent


def install_tracer(recorder: Tracer | None) -> None:
    """Have `recorder` record this process's spans; None: nobody."""
    global _installed
    _installed = recorder
