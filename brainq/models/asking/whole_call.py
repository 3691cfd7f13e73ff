"""A whole call of any provider, under the caller's permits, bill and limits.

A provider of the user's own may not look at the limits of a request, and may hang in a read that cannot be ended. Its
stream is read in a thread of its own, which is abandoned then. Ours hold the limits themselves, and are read directly.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from threading import Event

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.models.asking.permits import RatePermit, is_metered, permit_for
from brainq.models.asking.retry import Deadline, Pace
from brainq.models.providers import Provider
from brainq.processes.threads import run_in_thread

MAX_BUFFERED_CHUNKS = 64  # chunks that a reader has not taken yet
READER_POLL_S = 0.5  # for a reader that is gone
_StreamItem = ModelChunk | BaseException | None


def stream_with_permits(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """The provider's stream, each of its requests with a permit."""
    if _takes_own_permits(provider) or not is_metered():
        return paced_stream(provider, request)
    return _stream_under_permit(provider, request)


def reply_with_permits(provider: Provider, request: ModelRequest) -> ModelReply:
    """The provider's whole reply, each of its requests with a permit."""
    if _takes_own_permits(provider) or not is_metered():
        return provider.generate(request)
    with call_permit(provider, request) as (permit, sent):
        reply = provider.generate(sent)
        permit.note_answer()
        permit.request.complete(reply.usage)
        return reply


def _takes_own_permits(provider: Provider) -> bool:
    """A provider declares it by `takes_permits = True`: it takes a `permit_for` each request."""
    return bool(getattr(provider, "takes_permits", False))


def _stream_under_permit(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    with call_permit(provider, request) as (permit, sent):
        is_answered = False
        for chunk in paced_stream(provider, sent):
            if chunk.retry is not None:
                permit.retry(sent, chunk.retry.kind)
            elif not is_answered:
                is_answered = True
                permit.note_answer()
            permit.request.add_chunk(chunk)
            if chunk.reply is not None:
                permit.request.complete(chunk.reply.usage)
            yield chunk


@contextmanager
def call_permit(provider: Provider, request: ModelRequest) -> Generator[tuple[RatePermit, ModelRequest]]:
    """A permit for a call that is one request, and that call with the time that is left."""
    permit, began = permit_for(provider.name, request.model), time.monotonic()
    if permit.acquire(request, request.timeout_s):
        remaining_s = max(0.001, request.timeout_s - (time.monotonic() - began))
        request = request.model_copy(update={"timeout_s": remaining_s})
    with permit:
        yield permit, request


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
        while (chunk := _next_chunk(items, pace, f"provider {provider.name!r}")) is not None:
            pace.begin()
            yield chunk
    finally:
        gone.set()


def _next_chunk(items: Queue[_StreamItem], pace: Pace, name: str) -> ModelChunk | None:
    """None: the stream has ended. Raises what reading it raised, and ProviderError once it is late."""
    try:
        item = items.get(timeout=pace.allowed_s())
    except Empty:
        raise pace.error(name) from None
    if isinstance(item, Exception):
        raise item
    if isinstance(item, BaseException):
        raise RuntimeError(f"{name} raised {type(item).__name__}") from item
    if item is not None and pace.deadline.passed:  # an endless stream never keeps us waiting
        raise pace.error(name)
    return item
