"""A service's answer while it is open: its connection, permit and deadline, and the reply in it."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from types import TracebackType
from typing import Any, Self, TypeVar

from brainq.adapters.models.error_body import is_error_value
from brainq.adapters.models.failures import from_error_event, from_sdk_error, not_an_api, note_http_answer
from brainq.adapters.models.stream_reader import StreamReader
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.asking.permits import ServiceRequest
from brainq.engine.models.asking.reply_size import (
    MAX_REPLY_BYTES,
    ReplyTooLarge,
    as_chunk,
    bounded,
    max_carried,
    max_streamed,
)
from brainq.engine.models.asking.stall_clock import DeadlineCut, StallClock
from brainq.errors import ProviderError
from brainq.runtime.text.estimate import with_usage

T = TypeVar("T")
Event = dict[str, Any]
DRAIN_S = 0.05
END_MARKER = "[DONE]"


class OpenAnswer:
    """The answer to one request, which its constructor sends. The end of the `with` closes it.

    Any failure inside the `with` is raised as ProviderError.
    """

    def __init__(
        self,
        request: ModelRequest,
        sdk: Any,
        opening: AbstractContextManager[Any],
        sent: ServiceRequest,
        clock: StallClock,
    ) -> None:
        """Send the request, and raise what the SDK raises.

        opening: the SDK's streaming response, not entered yet.
        """
        self._name = sent.entry.provider
        self._request = request
        self._sdk = sdk
        self._opening = opening
        self._sent = sent
        self._clock = clock
        self._response = opening.__enter__()
        try:
            note_http_answer(sent, self._response.headers)
            self._cut = DeadlineCut(self._response.http_response, clock.allowed_s())
        except BaseException:
            opening.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the connection, and record the outcome of the request."""
        self._cut.close()
        try:
            self._opening.__exit__(None, None, None)
        finally:
            self._sent.settle(failure)
        if isinstance(failure, Exception):
            late = self._clock.error(self._name) if self._cut.fired else None
            error = late or read_error(self._name, failure, self._sdk, self._clock)
            if error is not failure:
                raise error from failure

    @property
    def is_json(self) -> bool:
        """Whether the answer is one JSON value, not a stream."""
        return "json" in self._response.headers.get("content-type", "")

    def reply(self, read: Callable[[Event], ModelReply]) -> ModelReply:
        """Return the reply of a whole answer. `read` finds it in the answer's JSON object."""
        self._require_api()
        value = read_json(b"".join(bounded(self._response.iter_bytes(), max_carried(self._sent.entry.max_bytes))))
        if not isinstance(value, dict):
            raise ValueError(f"the answer is a JSON {type(value).__name__}, not an object")
        self._require_no_error(value)  # some proxies send errors with HTTP 200
        reply = _parse(read, value)
        self._sent.add_chunk(as_chunk(reply))
        return self._completed(reply)

    def reply_as_chunks(self, read: Callable[[Event], ModelReply]) -> Iterator[ModelChunk]:
        """Yield the reply of a whole answer as the chunks of a stream."""
        reply = self.reply(read)
        thought = "\n\n".join(one.text for one in reply.reasoning if one.text)
        if reply.text or thought:
            yield ModelChunk(text=reply.text, reasoning=thought)
        yield ModelChunk(reply=reply)

    def chunks(self, reader: StreamReader) -> Generator[ModelChunk]:
        """Yield the chunks of a stream as they come. The last one has the reply."""
        self._require_api()
        events = sse_events(self._pieces(), max_carried(self._sent.entry.max_bytes))
        shown = 0
        for event in events:
            if event is None:
                reader.end_marked()
                break
            chunk = self._feed(reader, event)
            if chunk is not None:
                shown += len(chunk.text)
                self._clock.begin()
                # The time that the reader takes does not count for the service.
                self._cut.move(self._clock.deadline.remaining_s())
                yield chunk
                self._cut.move(self._clock.allowed_s())
            if reader.ended:
                break
        if self._cut.fired and not reader.ended:
            raise self._clock.error(self._name)
        if not reader.complete:
            raise ProviderError(f"{self._name}: the stream ended before the reply did", kind="stream", retryable=True)
        # Read the end before yielding the reply, because a caller that has the reply may drop this generator.
        self._drain(events)
        reply = self._completed(reader.reply())
        if len(reply.text) > shown:  # Half of an emoji was held back.
            yield ModelChunk(text=reply.text[shown:])
        yield ModelChunk(reply=reply)

    def _pieces(self) -> Iterator[bytes]:
        """Yield the pieces. Each is a sign of life: some services send pings while the model is silent."""
        for piece in bounded(self._response.iter_bytes(), max_streamed(self._sent.entry.max_bytes)):
            self._cut.move(self._clock.allowed_s())
            yield piece

    def _feed(self, reader: StreamReader, event: Event) -> ModelChunk | None:
        self._require_no_error(event)
        usage = reader.usage
        chunk = _parse(reader.feed, event)
        if reader.usage is not usage:
            self._sent.note_usage(reader.usage)
        if chunk is not None:
            self._sent.add_chunk(chunk)
        return chunk

    def _require_no_error(self, value: Event) -> None:
        """Raise the error that the service reports instead of a reply.

        A rate limit reported this way pauses the fleet like a 429.
        """
        if is_error_value(value):
            raise from_error_event(self._name, value)

    def _require_api(self) -> None:
        """Raise ServiceError if the answer is a web page, because another try would get the same."""
        if "html" in self._response.headers.get("content-type", ""):
            page = next(iter(self._response.iter_bytes()), b"")
            raise not_an_api(self._name, page.decode(errors="replace"))

    def _drain(self, events: Iterator[object]) -> None:
        """Read to the end of the answer, so that the connection can serve the next call.

        The end follows the end marker at once; if the server holds the stream open, the connection is given up.
        """
        self._cut.finish_within(DRAIN_S)
        try:
            for _ in events:
                pass
        except Exception:
            pass  # The reply is complete; only the connection is lost.

    def _completed(self, reply: ModelReply) -> ModelReply:
        """The reply with what its service left out: the model's name, also in its reasoning, and estimates of
        uncounted tokens.

        llama.cpp's stream on Anthropic's wire begins without model and input tokens if an emoji comes first.
        """
        request = self._request
        reply = with_usage(reply, request)
        if reply.reasoning:
            thoughts = [thought.model_copy(update={"model": request.model}) for thought in reply.reasoning]
            reply = reply.model_copy(update={"reasoning": tuple(thoughts)})
        self._sent.complete(reply.usage)
        return reply if reply.model else reply.model_copy(update={"model": request.model})


def read_error(name: str, error: Exception, sdk: Any, clock: StallClock) -> ProviderError:
    """Return the error to raise for a failed request, or for a failed read of its answer."""
    known = from_sdk_error(error, sdk, name)
    return clock.error(name) if known.kind == "timeout" and clock.first_is_late else known


def read_json(text: str | bytes) -> Any:
    """Return the JSON value in an answer. Raises ValueError.

    A number with more digits than Python reads becomes infinite, so that a reply is not lost over its token counts.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 1000 else float("inf"))


def _parse(read: Callable[[Event], T], value: Event) -> T:
    """Return `read(value)`. Also raises ValueError if `value` does not have the shape of the API."""
    try:
        return read(value)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"the answer does not have the form of the API: {error}") from error


# The SDKs' own stream classes are not used: they drop the connection and do not return it to the pool, hide whether the
# end marker was seen, and build a model object for every token. Lines are split on bytes, because text line splitting
# also breaks at U+2028, which JSON allows inside a string.


def sse_events(pieces: Iterable[bytes], most: int = max_carried(MAX_REPLY_BYTES)) -> Iterator[dict[str, Any] | None]:
    """Yield the `data` of each event as an object, or None for the end marker `[DONE]`.

    Comments, event names and empty events are skipped. Several `data` lines of one event are joined. Raises ValueError
    for data that is not a JSON object, and ReplyTooLarge for an event of more than `most` bytes.
    """
    data: list[bytes] = []
    size = 0
    lines = _split_lines(pieces, most)
    first = next(lines, b"").removeprefix(codecs.BOM_UTF8)  # with the mark, the line would be ignored
    for line in chain((first,), lines):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
            size += len(line)
            if size > most:
                raise ReplyTooLarge(most)
        elif not line and data:
            yield from _parse_event(data)
            data, size = [], 0
    if data:  # a stream that ends without its last blank line
        yield from _parse_event(data)


def _parse_event(data: list[bytes]) -> Iterator[dict[str, Any] | None]:
    text = b"\n".join(data).decode()
    if text == END_MARKER:
        yield None
    elif text:
        value = read_json(text)
        if not isinstance(value, dict):
            raise ValueError(f"an event is a JSON {type(value).__name__}, not an object")
        yield value


def _split_lines(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the lines, which end with LF, CR LF or CR alone.

    A CR ends its line at once, because its LF may never come.
    """
    rest: list[bytes] = []  # parts of a line without an end so far; a long one is joined once
    size, skips_lf = 0, False
    for piece in pieces:
        if skips_lf and piece:
            piece, skips_lf = piece.removeprefix(b"\n"), False
        if b"\r" in piece:
            skips_lf = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            rest.append(piece)
            size += len(piece)
            if size > most:
                raise ReplyTooLarge(most)
            continue
        *complete, last = b"".join((*rest, piece)).split(b"\n")
        rest, size = [last], len(last)
        yield from complete
    if size:
        yield b"".join(rest)
