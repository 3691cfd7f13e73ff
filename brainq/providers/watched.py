"""The stream of a provider, cut where it says nothing for too long or goes on past its time.

A provider of the user's own may not look at the limits of a request, and may hang in a read that nobody can end. Its
stream is read in a thread of its own, which is abandoned then. Ours hold the limits themselves, and are read directly.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from threading import Event
from typing import Any, TypeVar

from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.providers.base import Provider
from brainq.providers.pace import Pace
from brainq.providers.retry import Deadline
from brainq.providers.within import in_thread

F = TypeVar("F", bound=Callable[..., Any])

MOST_WAITING = 64  # chunks that a reader has not taken yet
LOOK_EVERY_S = 0.5  # for a reader that is gone

_Item = ModelChunk | BaseException | None


def keeps_limits(method: F) -> F:
    """Marks a `generate_stream` that holds `timeout_s`, `first_token_s` and `idle_s` itself. One that overrides it
    does not carry the mark."""
    setattr(method, "keeps_limits", True)  # noqa: B010 (a function has no such attribute by its type)
    return method


def watched(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """The chunks of `generate_stream`. Raises what it raises, and ProviderError `timeout` or `stalled`."""
    if getattr(provider.generate_stream, "keeps_limits", False):
        return provider.generate_stream(request)
    return _read_apart(provider, request)


def _read_apart(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    pace = Pace.of(request, Deadline(request.timeout_s))
    items: Queue[_Item] = Queue(MOST_WAITING)
    gone = Event()
    variables = contextvars.copy_context()  # spans opened here stay the parents of those opened there

    def put(item: _Item) -> bool:
        while not gone.is_set():
            try:
                items.put(item, timeout=LOOK_EVERY_S)
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

    in_thread(lambda: variables.run(read))
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
