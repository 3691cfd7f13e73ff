"""What a producer's trace and its turns have to do with each other."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from brainq.contracts.turn import TurnRequest
from brainq.observe import telemetry_names as names
from brainq.observe.otel_context import host_tracer, open_place
from brainq.observe.trace_context import TraceContext, read_traceparent
from brainq.observe.tracing import tracer
from brainq.observe.turn_spans import tenant_of

_came_with: ContextVar[TraceContext | None] = ContextVar("brainq_came_with", default=None)


def came_with(traceparent: str | None) -> None:
    """What is submitted from here on in this context came with a request or message of this `traceparent`."""
    _came_with.set(read_traceparent(traceparent))


@contextmanager
def submitting(request: TurnRequest) -> Generator[TurnRequest]:
    """The request with the `traceparent` that its turn goes on from: that of a span of the submit, where somebody
    records, else the producer's own, if it has one."""
    recorder, place = tracer() or host_tracer(), open_place() or _came_with.get()
    if request.traceparent is not None or (recorder is None and place is None):
        yield request
    elif recorder is None:
        assert place is not None
        yield request.model_copy(update={"traceparent": place.traceparent})
    else:
        attributes = {
            names.TURN: request.turn_id,
            names.CONVERSATION: request.session_id,
            names.TENANT: tenant_of(request.session_id),
            names.AGENT: request.brain,
            names.ON_BUSY: request.on_busy,
        }
        with recorder.start(names.SUBMIT, attributes, parent=place, kind="producer") as span:
            yield request.model_copy(update={"traceparent": span.traceparent})
