"""The pace of a stream: how long it may be silent, and the cut of a provider's stream that does not hold these
limits itself.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from threading import Event
from typing import Any, TypeVar

from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.errors import ProviderError
from brainq.models.asking.retry import Clock, Deadline
from brainq.models.base import Provider
from brainq.processes.bounded_call import run_in_thread

# How long a stream may say nothing: until its first output, then between two pieces; never past its deadline.


class Pace:
    """The time one stream has for its next piece. Counts `first_token_s` from its making.

    A pause after the first output that is longer than the first one may be is a stall, too, so `idle_s` never
    counts for more than `first_token_s`.
    """

    def __init__(
        self,
        deadline: Deadline,
        first_token_s: float | None = None,
        idle_s: float | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.deadline = deadline
        self._clock = clock
        self._first = None if first_token_s is None else Deadline(first_token_s, clock)
        limits = [limit for limit in (first_token_s, idle_s) if limit is not None]
        self._idle_s = min(limits) if limits and idle_s is not None else None
        self._begun = False

    @classmethod
    def for_request(cls, request: ModelRequest, deadline: Deadline, clock: Clock = time.monotonic) -> Pace:
        return cls(deadline, request.first_token_s, request.idle_s, clock)

    def restart_first(self) -> None:
        """The request goes out only now, after it waited for its place: from here on its first output is waited for."""
        if self._first is not None:
            self._first = Deadline(self._first.timeout_s, self._clock)

    def begin(self) -> None:
        """The first output is there: from now on pauses count."""
        self._begun = True

    def allowed_s(self) -> float:
        """Seconds until the next piece must be there."""
        remaining_s = self.deadline.remaining_s()
        if self._begun:
            return remaining_s if self._idle_s is None else min(remaining_s, self._idle_s)
        return remaining_s if self._first is None else min(remaining_s, self._first.remaining_s())

    @property
    def first_is_late(self) -> bool:
        """Whether the first output should have been there by now, though there is time left."""
        return not self._begun and self._first is not None and self._first.passed and not self.deadline.passed

    def error(self, name: str) -> ProviderError:
        """What to raise when `allowed_s` is over: `timeout` at the deadline, else `stalled`."""
        if self.deadline.passed:
            return self.deadline.error()
        limit_s = self._idle_s if self._begun else self._first and self._first.timeout_s
        what = "no more of the reply" if self._begun else "nothing of the reply"
        return ProviderError(
            f"{name}: the stream stalled: {what} came within {limit_s or 0:g} s", kind="stalled", retryable=True
        )


# The stream of a provider, cut where it says nothing for too long or goes on past its time.
#
# A provider of the user's own may not look at the limits of a request, and may hang in a read that nobody can end.
# Its stream is read in a thread of its own, which is abandoned then. Ours hold the limits themselves, and are read
# directly.

F = TypeVar("F", bound=Callable[..., Any])

MAX_BUFFERED_CHUNKS = 64  # chunks that a reader has not taken yet

READER_POLL_S = 0.5  # for a reader that is gone

_StreamItem = ModelChunk | BaseException | None


def keeps_limits(method: F) -> F:
    """Marks a `generate_stream` that holds `timeout_s`, `first_token_s` and `idle_s` itself. One that overrides it
    does not carry the mark."""
    setattr(method, "keeps_limits", True)  # noqa: B010 (a function has no such attribute by its type)
    return method


def paced_stream(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """The chunks of `generate_stream`. Raises what it raises, and ProviderError `timeout` or `stalled`."""
    if getattr(provider.generate_stream, "keeps_limits", False):
        return provider.generate_stream(request)
    return _read_in_thread(provider, request)


def _read_in_thread(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    pace = Pace.for_request(request, Deadline(request.timeout_s))
    items: Queue[_StreamItem] = Queue(MAX_BUFFERED_CHUNKS)
    gone = Event()
    variables = contextvars.copy_context()  # spans opened here stay the parents of those opened there

    def put(item: _StreamItem) -> bool:
        while not gone.is_set():
            try:
                items.put(item, timeout=READER_POLL_S)
            except Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for chunk in provider.generate_stream(request):
                if not put(chunk):
                    return
            put(None)
        except BaseException as error:  # SystemExit, too: it reaches the reader instead of ending this thread
            put(error)

    run_in_thread(lambda: variables.run(read))
    try:
        while True:
            try:
                item = items.get(timeout=pace.allowed_s())
            except Empty:
                raise pace.error(f"provider {provider.name!r}") from None
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            if isinstance(item, BaseException):
                raise RuntimeError(f"provider {provider.name!r} raised {type(item).__name__}") from item
            if pace.deadline.passed:  # an endless stream never keeps us waiting
                raise pace.error(f"provider {provider.name!r}")
            pace.begin()
            yield item
    finally:
        gone.set()
