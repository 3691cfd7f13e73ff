"""Where a turn is in a trace: W3C trace context, and ids that follow from the turn's own.

Whoever works on a turn knows, without asking anybody, the id of its `invoke_agent` span and those of its calls. So
spans of any process are in one tree, also those that are sent before their parent has ended, and a worker that dies
takes none but its own along.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

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
