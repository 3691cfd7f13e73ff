"""Which turn a thread works on: the ids that each line it logs has, of whatever library.

Set where a task enters, so a record costs one look at a context variable, and nothing where no turn is worked on.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_ids: ContextVar[dict[str, str] | None] = ContextVar("brainq_log_ids", default=None)


REQUEST = "request_id"


@contextmanager
def request_log_ids(request_id: str) -> Generator[None]:
    """What is logged within, in this context, is about this request of a gateway's."""
    token = _ids.set({REQUEST: request_id})
    try:
        yield
    finally:
        _ids.reset(token)


@contextmanager
def turn_log_ids(session_id: str, turn_id: str, call_id: str = "") -> Generator[None]:
    """What is logged within, in this context, is about this turn, and this call of it."""
    ids = {"turn_id": turn_id, "session_id": session_id}
    above = _ids.get()
    if above is not None and REQUEST in above:
        ids[REQUEST] = above[REQUEST]
    token = _ids.set({**ids, "call_id": call_id} if call_id else ids)
    try:
        yield
    finally:
        _ids.reset(token)


def current_log_ids() -> dict[str, str]:
    """turn_id, session_id, call_id, and request_id in a gateway; with telemetry on trace_id and span_id, as W3C writes
    them. Empty: no turn, and no request."""
    from brainq.observe.tracing import current_place  # here: `brainq --help` needs no OpenTelemetry

    ids = _ids.get()
    if ids is None:
        return {}
    place = current_place()
    if place is None:
        return ids
    return {**ids, "trace_id": f"{place.trace_id:032x}", "span_id": f"{place.span_id:016x}"}


def stamp_record(record: logging.LogRecord) -> None:
    """Note the ids on a record, in the thread that makes it."""
    if _ids.get() is not None:
        record.brainq_ids = current_log_ids()


def ids_of_record(record: logging.LogRecord) -> dict[str, str]:
    """The ids of a record; empty for one that is about no turn."""
    return getattr(record, "brainq_ids", {})
