"""A service's answer while it is open: its connection, its permit, its deadline, and the reply in it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.errors import ProviderError
from brainq.models.asking.failures import from_error_event, from_sdk_error
from brainq.models.asking.permits import RatePermit
from brainq.models.asking.retry import Pace
from brainq.text.estimate import estimate_request, with_usage

T = TypeVar("T")
Event = dict[str, Any]
DRAIN_S = 0.05
END_MARKER = "[DONE]"


class StreamReader(Protocol):
    """Puts a reply together from stream events."""

    @property
    def complete(self) -> bool:
        """Whether the stream marked the reply as whole."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing can follow, apart from the `[DONE]` of some services."""
        ...

    @property
    def usage(self) -> TokenUsage:
        """What the service has reported so far; the same object until it reports more."""
        ...

    def feed(self, event: Event, /) -> ModelChunk | None: ...
    def reply(self) -> ModelReply: ...


class OpenAnswer:
    """The answer to one request, which its making sends. Entered, it is closed at the end of the `with`.

    Whatever fails inside the `with` is raised as ProviderError.
    """

    def __init__(
        self,
        name: str,
        request: ModelRequest,
        sdk: Any,
        opening: AbstractContextManager[Any],
        permit: RatePermit,
        pace: Pace,
    ) -> None:
        """`opening` is the SDK's streaming response, not entered yet. Raises what entering it raises."""
        self._name = name
        self._request = request
        self._sdk = sdk
        self._opening = opening
        self._permit = permit
        self._pace = pace
        self._response = opening.__enter__()
        permit.note_answer(self._response.headers)
        self._cut = DeadlineCut(self._response.http_response, pace.allowed_s())

    def close(self, failure: BaseException | None = None) -> None:
        """Give the connection back, and report to the permit what came of the request."""
        self._cut.close()
        try:
            self._opening.__exit__(None, None, None)
        finally:
            self._permit.__exit__(None, failure, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(failure)
        if isinstance(failure, Exception):
            late = self._pace.error(self._name) if self._cut.fired else None
            error = late or read_error(self._name, failure, self._sdk, self._pace)
            if error is not failure:
                raise error from failure

    @property
    def is_json(self) -> bool:
        """Whether it is one JSON value, not a stream."""
        return "json" in self._response.headers.get("content-type", "")

    def reply(self, read: Callable[[Event], ModelReply]) -> ModelReply:
        """The reply in a whole answer. `read` finds it in the answer's JSON object."""
        value = json.loads(self._response.read())
        if not isinstance(value, dict):
            raise ValueError(f"the answer is a JSON {type(value).__name__}, not an object")
        if value.get("error"):  # some proxies send errors with HTTP 200
            raise from_error_event(self._name, value["error"])
        return self._completed(_parse(read, value))

    def reply_as_chunks(self, read: Callable[[Event], ModelReply]) -> Iterator[ModelChunk]:
        """The reply in a whole answer, as a stream's chunks."""
        reply = self.reply(read)
        thought = "\n\n".join(one.text for one in reply.reasoning if one.text)
        if reply.text or thought:
            yield ModelChunk(text=reply.text, reasoning=thought)
        yield ModelChunk(reply=reply)

    def chunks(self, reader: StreamReader) -> Generator[ModelChunk]:
        """A stream's chunks as they come; the last one has the reply."""
        events = sse_events(self._pieces())
        shown = 0
        for event in events:
            if event is None:
                break
            chunk = self._feed(reader, event)
            if chunk is not None:
                shown += len(chunk.text)
                self._pace.begin()
                self._cut.move(self._pace.deadline.remaining_s())  # the reader's time is not the service's
                yield chunk
                self._cut.move(self._pace.allowed_s())
            if reader.ended:
                break
        if self._cut.fired and not reader.ended:
            raise self._pace.error(self._name)
        if not reader.complete:
            raise ProviderError(f"{self._name}: the stream ended before the reply did", kind="stream", retryable=True)
        self._drain(events)  # before the reply: with it in hand, a caller may drop this generator
        reply = self._completed(reader.reply())
        if len(reply.text) > shown:  # half an emoji that was held back
            yield ModelChunk(text=reply.text[shown:])
        yield ModelChunk(reply=reply)

    def _pieces(self) -> Iterator[bytes]:
        """Each piece is a sign of life: some services send pings while the model is silent."""
        for piece in self._response.iter_bytes():
            self._cut.move(self._pace.allowed_s())
            yield piece

    def _feed(self, reader: StreamReader, event: Event) -> ModelChunk | None:
        if event.get("error"):
            raise from_error_event(self._name, event["error"])
        usage = reader.usage
        chunk = _parse(reader.feed, event)
        if reader.usage is not usage:
            self._permit.note_usage(reader.usage)
        if chunk is not None:
            self._permit.request.add_chunk(chunk)
        return chunk

    def _drain(self, events: Iterator[object]) -> None:
        """Read to the end of the answer, so that the connection can serve the next call.

        The end follows the end marker at once; if the server holds the stream open, the connection is given up.
        """
        self._cut.finish_within(DRAIN_S)
        try:
            for _ in events:
                pass
        except Exception:
            pass  # the reply is complete; only the connection is lost

    def _completed(self, reply: ModelReply) -> ModelReply:
        """The reply with what its service left out: the model's name, also in its reasoning, and estimates of
        uncounted tokens.

        llama.cpp's stream on Anthropic's wire begins without model and input tokens if an emoji comes first.
        """
        request = self._request
        reply = with_usage(reply, request)
        if not reply.usage.input_tokens:
            usage = reply.usage.model_copy(update={"input_tokens": estimate_request(request), "estimated": True})
            reply = reply.model_copy(update={"usage": usage})
        if reply.reasoning:
            thoughts = [thought.model_copy(update={"model": request.model}) for thought in reply.reasoning]
            reply = reply.model_copy(update={"reasoning": tuple(thoughts)})
        self._permit.request.complete(reply.usage)
        return reply if reply.model else reply.model_copy(update={"model": request.model})


class DeadlineCut:
    """Shuts `response`'s socket down after `after_s` seconds, unless it is closed before; `fired` once it did.

    `move` gives it another time, as often as a stream has pieces: a later one costs no new timer.

    The HTTP library's read timeout starts anew with every piece it receives, so a server that drips bytes, or stalls
    late, outlives any total. Shutting the socket down ends the read in whichever thread sits in it.

    `response` is an httpx or httpx2 response. Without a socket behind it (a mock transport) nothing is cut.
    """

    def __init__(self, response: Any, after_s: float) -> None:
        self.fired = False
        self._lock = threading.Lock()
        self._socket = _socket_of(response)
        self._timer: threading.Timer | None = None
        self._rings_at = self._cuts_at = 0.0
        self._is_last = False
        with self._lock:
            self._arm(after_s)

    def move(self, after_s: float) -> None:
        """Cut `after_s` seconds from now instead."""
        with self._lock:
            if self._is_last:
                return
            self._cuts_at = time.monotonic() + after_s
            if self._cuts_at < self._rings_at:
                if self._timer is not None:
                    self._timer.cancel()
                self._arm(after_s)

    def finish_within(self, after_s: float) -> None:
        """Cut `after_s` seconds from now, whatever `move` says afterwards."""
        self.move(after_s)
        self._is_last = True

    def _arm(self, after_s: float) -> None:
        if self._socket is None:
            return
        self._rings_at = self._cuts_at = time.monotonic() + after_s
        self._timer = threading.Timer(after_s, self._cut_if_due)
        self._timer.daemon = True
        self._timer.start()

    def _cut_if_due(self) -> None:
        with self._lock:
            if self._socket is None or self.fired:
                return
            early_s = self._cuts_at - time.monotonic()
            if early_s > 0:
                self._arm(early_s)
                return
            self.fired = True
            try:
                # Not SSLSocket.shutdown: it drops the TLS state under the thread that is reading.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # closed by the other side in the meantime

    def close(self) -> None:
        """Cut nothing any more: the connection may serve another call."""
        with self._lock:
            self._socket = None
        if self._timer is not None:
            self._timer.cancel()


def _socket_of(response: Any) -> socket.socket | None:
    stream = response.extensions.get("network_stream")
    behind = None if stream is None else stream.get_extra_info("socket")
    return behind if isinstance(behind, socket.socket) else None


def read_error(name: str, error: Exception, sdk: Any, pace: Pace) -> ProviderError:
    """What to raise for a request, or the reading of an answer, that failed so."""
    known = from_sdk_error(error, sdk, name)
    return pace.error(name) if known.kind == "timeout" and pace.first_is_late else known


def _parse(read: Callable[[Event], T], value: Event) -> T:
    """`read(value)`; ValueError also where `value` has quite another shape than the API's."""
    try:
        return read(value)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"not the shape of the API: {error}") from error


# The SDKs' own stream classes are not used: they drop the connection instead of returning it to the pool, hide whether
# the end marker was seen, and build a model object for every token. Lines are split on bytes, because text line
# splitting also breaks at U+2028, which JSON allows inside a string.


def sse_events(pieces: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """The `data` of each event as an object, or None for the end marker `[DONE]`.

    Comments, event names and empty events are skipped; several `data` lines of one event are joined.
    Raises ValueError for data that is not a JSON object.
    """
    data: list[bytes] = []
    for line in _split_lines(pieces):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield from _parse_event(data)
            data = []
    if data:  # a stream that ends without its last blank line
        yield from _parse_event(data)


def _parse_event(data: list[bytes]) -> Iterator[dict[str, Any] | None]:
    text = b"\n".join(data).decode()
    if text == END_MARKER:
        yield None
    elif text:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError(f"an event is a JSON {type(value).__name__}, not an object")
        yield value


def _split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest
