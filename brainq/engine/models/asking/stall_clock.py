"""The time limits of one model call: its deadline, the longest silence of its stream, and the cut when either is
exceeded.

A user's own provider may ignore the limits of a request, and may hang in a read that cannot be ended. Its stream is
read in a separate thread, which is abandoned if it is late. brainq's providers keep the limits themselves, and are read
directly.
"""

from __future__ import annotations

import contextvars
import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from threading import Event
from typing import Any

from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.engine.models.providers import Provider, chunks_of
from brainq.errors import ProviderError
from brainq.runtime.processes.threads import run_in_thread
from brainq.runtime.processes.timers import TIMERS, Watch

MAX_BUFFERED_CHUNKS = 64  # chunks that the reader has not taken yet
READER_POLL_S = 0.5  # how often to check whether the reader is gone
CUT_SLACK_S = 0.02  # a cut that would be earlier by less than this leaves the timer unchanged
Clock = Callable[[], float]
_StreamItem = ModelChunk | BaseException | None


class Deadline:
    """A deadline of `timeout_s` seconds, in monotonic time from its creation."""

    def __init__(self, timeout_s: float, clock: Clock = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self.clock = clock
        self._ends_at = clock() + timeout_s

    def remaining_s(self) -> float:
        """Return the seconds left, never below 0."""
        return max(0.0, self._ends_at - self.clock())

    @property
    def passed(self) -> bool:
        return self.clock() >= self._ends_at

    def require(self, last: ProviderError | None = None) -> None:
        """Raise `error(last)` once the time is over."""
        if self.passed:
            raise self.error(last) from last

    def error(self, last: ProviderError | None = None) -> ProviderError:
        """Return the error of a call whose time is over. It names `last`, the failure that used the time up."""
        why = f" (the last try: {last})" if last else ""
        return ProviderError(
            f"the model did not answer within {self.timeout_s:g} s{why}", kind="timeout", retryable=True
        )


class StallClock:
    """The time limits of one stream. `first_token_s` counts from its creation, when the request is sent.

    `idle_s` never counts for more than `first_token_s`.
    """

    def __init__(self, deadline: Deadline, first_token_s: float | None = None, idle_s: float | None = None) -> None:
        self.deadline = deadline
        self._first = None if first_token_s is None else Deadline(first_token_s, deadline.clock)
        limits = [limit for limit in (first_token_s, idle_s) if limit is not None]
        self._idle_s = min(limits) if limits and idle_s is not None else None
        self._begun = False

    def begin(self) -> None:
        """Note that the first output has come. From now on `idle_s` limits each pause."""
        self._begun = True

    def allowed_s(self) -> float:
        """Return the seconds within which the next piece must come."""
        remaining_s = self.deadline.remaining_s()
        if self._begun:
            return remaining_s if self._idle_s is None else min(remaining_s, self._idle_s)
        return remaining_s if self._first is None else min(remaining_s, self._first.remaining_s())

    @property
    def first_is_late(self) -> bool:
        """Whether the first output is late, though the deadline has not passed."""
        return not self._begun and self._first is not None and self._first.passed and not self.deadline.passed

    def error(self, name: str) -> ProviderError:
        """Return the error to raise once `allowed_s` is over: `timeout` at the deadline, or else `stalled`."""
        if self.deadline.passed:
            return self.deadline.error()
        limit_s = self._idle_s if self._begun else self._first and self._first.timeout_s
        what = "no more of the reply" if self._begun else "nothing of the reply"
        return ProviderError(
            f"{name}: the stream stalled: {what} came within {limit_s or 0:g} s", kind="stalled", retryable=True
        )


class DeadlineCut:
    """A timer that shuts down the socket of `response` after `after_s` seconds, unless it is closed before. `fired` is
    then set.

    The HTTP library's read timeout starts again with every piece. So a server that sends single bytes, or stalls late,
    could outlive any total. Shutting the socket down ends the read in whichever thread it runs.

    Raises RuntimeError if the system refuses the thread of timers: no stream is read that could not be cut.

    response: an httpx or httpx2 response. One without a socket (a mock transport) is never cut.
    """

    def __init__(self, response: Any, after_s: float) -> None:
        self.fired = False
        self._lock = threading.Lock()
        self._socket = _socket_of(response)
        self._is_last = False
        self._watch = Watch(time.monotonic() + after_s, self._cut_if_due)
        if self._socket is not None:
            TIMERS.add(self._watch)

    def move(self, after_s: float) -> None:
        """Set the cut to `after_s` seconds from now. Moving it to the same time or a later one costs no new timer."""
        with self._lock:
            if self._is_last:
                return
            due = time.monotonic() + after_s
            if self._socket is not None and not 0 < self._watch.due - due < CUT_SLACK_S:
                TIMERS.move(self._watch, due)

    def finish_within(self, after_s: float) -> None:
        """Set the cut to `after_s` seconds from now for good: later moves have no effect."""
        self.move(after_s)
        self._is_last = True

    def _cut_if_due(self) -> None:
        with self._lock:
            if self._socket is None or self.fired:
                return
            if self._watch.due > time.monotonic():  # it was moved just now
                self._watch.act = self._cut_if_due
                TIMERS.add(self._watch)
                return
            self.fired = True
            try:
                # SSLSocket.shutdown would drop the TLS state under the thread that is reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # the other side has closed it in the meantime

    def close(self) -> None:
        """Cancel the cut, because the connection may serve another call."""
        with self._lock:
            self._socket = self._watch.act = None


def _socket_of(response: Any) -> socket.socket | None:
    stream = response.extensions.get("network_stream")
    behind = None if stream is None else stream.get_extra_info("socket")
    return behind if isinstance(behind, socket.socket) else None


def stream_within_limits(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """Return the chunks of `generate_stream`. Also raises ProviderError of kind `timeout` or `stalled`."""
    if getattr(getattr(provider, "generate_stream", None), "keeps_limits", False):
        return provider.generate_stream(request)
    return _read_in_thread(provider, request)


def _read_in_thread(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    clock = StallClock(Deadline(request.timeout_s), request.first_token_s, request.idle_s)
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
            for chunk in chunks_of(provider, request):
                if not put(chunk):
                    return
            put(None)
        except BaseException as error:  # SystemExit, too: it reaches the reader and does not end this thread
            put(error)

    run_in_thread(lambda: variables.run(read))
    try:
        while (chunk := _next_chunk(items, clock, f"provider {provider.name!r}")) is not None:
            clock.begin()
            yield chunk
    finally:
        gone.set()


def _next_chunk(items: Queue[_StreamItem], clock: StallClock, name: str) -> ModelChunk | None:
    """Return the next chunk, or None at the end of the stream. Raises ProviderError if it is late."""
    try:
        item = items.get(timeout=clock.allowed_s())
    except Empty:
        raise clock.error(name) from None
    if isinstance(item, Exception):
        raise item
    if isinstance(item, BaseException):
        raise RuntimeError(f"{name} raised {type(item).__name__}") from item
    if item is not None and clock.deadline.passed:  # an endless stream does not keep the reader past the deadline
        raise clock.error(name)
    return item
