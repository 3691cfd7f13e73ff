"""What the providers that sit on a vendor's SDK share: client, deadline, retries, reading answers."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.errors import ProviderError, SetupError
from brainq.models.asking.deadline_cut import DeadlineCut
from brainq.models.asking.failures import (
    as_fleet_wait,
    from_error_event,
    from_sdk_error,
    may_have_been_processed,
    refusal_key,
    refused_parameter,
)
from brainq.models.asking.pace import Pace, keeps_limits
from brainq.models.asking.permits import RatePermit, account_digest, permit_for
from brainq.models.asking.retry import Deadline, RetryPolicy, call_with_retry, stream_with_retry
from brainq.models.attachments import (
    SHOWABLE_KINDS,
    UNREADABLE_FILES,
    AttachmentBlocks,
    is_unreadable,
    refused_attachment_kind,
)
from brainq.models.wire import sse_events, with_extra_parameters
from brainq.observe.logs import logger
from brainq.text.estimate import estimate_request, with_usage

T = TypeVar("T")
log = logger("brainq.models")

CONNECT_TIMEOUT_S = 10.0
PERMIT_CONNECT_TIMEOUT_S = 4.0  # a request is to arrive while its place counts
DRAIN_S = 0.05
MAX_REMEMBERED_REFUSALS = 1000


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

    def feed(self, event: dict[str, Any], /) -> ModelChunk | None: ...
    def reply(self) -> ModelReply: ...


class VendorProvider(ABC):
    """A provider on a vendor's SDK.

    The SDK makes the connection, authenticates and maps statuses to exceptions; its own retries are off, for
    they know neither our deadline nor what was already shown. One client, made at first use, serves all
    threads and keeps its connections.

    sdk_name              also the name of the extra that installs it
    optional_parameters   left out of a model's requests once the server has refused them
    schema_parameter      the one of them with the schema of the answer: it may be this schema that is refused
    unsupported_options   options for which its API has no parameter
    left_out_once         only the request that was refused is sent without these
    """

    sdk_name: str
    takes_permits = True
    _base_url: str | None
    _api_key: str | None
    optional_parameters: tuple[str, ...] = ()
    schema_parameter: str = ""
    unsupported_options: tuple[str, ...] = ()
    left_out_once: frozenset[str] = frozenset({UNREADABLE_FILES})

    def __init__(self, *, name: str, retry: RetryPolicy | None) -> None:
        self.name = name
        self._retry = retry or RetryPolicy()
        self._lock = threading.Lock()
        self._client: Any = None
        self._client_pid = 0
        self._refused: frozenset[str] = frozenset()

    @abstractmethod
    def _make_client(self, sdk: Any) -> Any:
        """A client with the SDK's retries switched off."""

    @abstractmethod
    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        """The request as keyword arguments of the SDK, without the `refused` parameters."""

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        """What the request is to be sent without, as this answer says; None if it says no such thing."""
        if is_unreadable(request, status, body):
            return UNREADABLE_FILES
        kind = refused_attachment_kind(request, status, body)
        return (
            refusal_key(f"{kind}s", request.model)
            if kind
            else refused_parameter(status, body, self.optional_parameters)
        )

    def _blocks(self, request: ModelRequest, refused: frozenset[str]) -> AttachmentBlocks:
        """Makes the blocks of its images and files, without the kinds that its model was found not to take."""
        if UNREADABLE_FILES in refused:
            return AttachmentBlocks(request.blobs, frozenset(SHOWABLE_KINDS))
        return AttachmentBlocks(
            request.blobs,
            frozenset(kind for kind in SHOWABLE_KINDS if refusal_key(f"{kind}s", request.model) in refused),
        )

    @abstractmethod
    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        """The SDK's streaming response (`iter_bytes`, `read`, `http_response`) to `body`."""

    @abstractmethod
    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        """The reply in an unstreamed answer; ValueError if there is none."""

    @abstractmethod
    def _new_reader(self, request: ModelRequest) -> StreamReader:
        """A reader for one stream."""

    def generate(self, request: ModelRequest) -> ModelReply:
        """See Provider.generate. Raises SetupError if the SDK or the API key is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return call_with_retry(lambda: self._request_whole(request, deadline), deadline, self._retry)

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """See Provider.generate_stream. Raises SetupError if the SDK or the API key is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return stream_with_retry(lambda: self._request_stream(request, deadline), deadline, self._retry)

    @abstractmethod
    def _require_key(self) -> str:
        """The API key. Raises SetupError if there is none."""

    def check(self) -> None:
        """See Checkable.check: the API key, and the SDK, which is found but not imported."""
        self._require_key()
        if find_spec(self.sdk_name) is None:
            raise self._sdk_missing()

    def warm_up(self) -> None:
        """Import the SDK and make the client, which takes up to a second, before a deadline runs.

        Raises SetupError if the SDK or the API key is missing. Calling it is optional.
        """
        self._connected_client(self._sdk())

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _request_whole(self, request: ModelRequest, deadline: Deadline) -> ModelReply:
        with self._open_answer(request, Pace(deadline), stream=False) as (response, _, place):
            reply = _complete_reply(_parse(partial(self._read_whole, request), self._object(response.read())), request)
            place.set_usage(reply.usage)
            return reply

    def _request_stream(self, request: ModelRequest, deadline: Deadline) -> Generator[ModelChunk]:
        pace = Pace.for_request(request, deadline, self._retry.clock)
        with self._open_answer(request, pace, stream=True) as (response, cutoff, place):
            if "json" in response.headers.get("content-type", ""):  # a server that ignores `stream`
                reply = _complete_reply(
                    _parse(partial(self._read_whole, request), self._object(response.read())), request
                )
                place.set_usage(reply.usage)
                thought = "\n\n".join(one.text for one in reply.reasoning if one.text)
                if reply.text or thought:
                    yield ModelChunk(text=reply.text, reasoning=thought)
                yield ModelChunk(reply=reply)
                return
            reader = self._new_reader(request)
            usage = reader.usage
            shown = 0
            stream = sse_events(_postpone_cut(response.iter_bytes(), pace, cutoff))
            for event in stream:
                if event is None:
                    break
                if event.get("error"):
                    raise from_error_event(self.name, event["error"])
                chunk = _parse(reader.feed, event)
                if reader.usage is not usage:
                    usage = reader.usage
                    place.note_usage(usage)
                if chunk is not None:
                    place.note_chunk(chunk)
                    shown += len(chunk.text)
                    pace.begin()
                    cutoff.move(deadline.remaining_s())  # the reader's time is not the service's
                    yield chunk
                    cutoff.move(pace.allowed_s())
                if reader.ended:
                    break
            if cutoff.fired and not reader.ended:
                raise pace.error(self.name)
            if not reader.complete:
                raise ProviderError(
                    f"{self.name}: the stream ended before the reply did", kind="stream", retryable=True
                )
            # Before the reply: with it in hand, a caller may drop this generator.
            _drain(stream, cutoff)
            reply = _complete_reply(reader.reply(), request)
            place.set_usage(reply.usage)
            if len(reply.text) > shown:  # half an emoji that was held back
                yield ModelChunk(text=reply.text[shown:])
            yield ModelChunk(reply=reply)

    def _object(self, body: bytes) -> dict[str, Any]:
        value = json.loads(body)
        if not isinstance(value, dict):
            raise ValueError(f"the answer is a JSON {type(value).__name__}, not an object")
        if value.get("error"):  # some proxies send errors with HTTP 200
            raise from_error_event(self.name, value["error"])
        return value

    @contextmanager
    def _open_answer(
        self, request: ModelRequest, pace: Pace, *, stream: bool
    ) -> Generator[tuple[Any, DeadlineCut, RatePermit]]:
        """The service's answer, and its place; whatever fails while it is open is raised as ProviderError."""
        sdk = self._sdk()
        client = self._connected_client(sdk)
        cutoff: DeadlineCut | None = None
        try:
            with self._send_with_permit(sdk, client, request, pace, stream=stream) as (response, place):
                cutoff = DeadlineCut(response.http_response, pace.allowed_s())
                with cutoff:
                    yield response, cutoff, place
        except Exception as error:
            if cutoff is not None and cutoff.fired:
                raise pace.error(self.name) from error
            known = from_sdk_error(error, sdk, self.name)
            if known.kind == "timeout" and pace.first_is_late:
                known = pace.error(self.name)
            raise known from error

    @contextmanager
    def _send_with_permit(
        self, sdk: Any, client: Any, request: ModelRequest, pace: Pace, *, stream: bool
    ) -> Generator[tuple[Any, RatePermit]]:
        """Send the request, each time at its place, again at once without what this server does not take."""
        self._warn_unsupported(request)
        once: frozenset[str] = frozenset()
        while True:
            place = permit_for(self.name, request.model, account_digest(self._base_url, self._api_key))
            if place.acquire(request, pace.deadline.remaining_s()):
                pace.restart_first()
            connect_s = PERMIT_CONNECT_TIMEOUT_S if place.is_acquired else CONNECT_TIMEOUT_S
            remaining_s = max(pace.allowed_s(), 0.001)
            timeout = sdk.Timeout(remaining_s, connect=min(remaining_s, connect_s))
            refused = self._left_out(request) | once
            body = with_extra_parameters(self._body(request, stream=stream, refused=refused), request.options)
            opening = self._send(client, body, timeout)
            try:
                response = opening.__enter__()
            except sdk.APIStatusError as error:
                place.note_answer(error.response.headers, error.status_code)
                place.settle()
                named = self._refusal(request, error.status_code, error.body)
                if named is None or named in refused:
                    if place.is_stopped:
                        raise as_fleet_wait(error, sdk, self.name) from error
                    raise
                if named in self.left_out_once or len(self._refused) >= MAX_REMEMBERED_REFUSALS:
                    once |= {named}
                else:
                    self._refused |= {self._refusal_key(named, request)}
                    log.warning("the service refuses a part of requests", provider=self.name, left_out=named)
                continue
            except BaseException as error:
                place.note_failure(error, is_read=may_have_been_processed(error, sdk, stream=stream))
                place.settle()
                raise
            place.note_answer(response.headers)
            try:
                yield response, place
            except BaseException as error:
                place.note_failure(error)
                raise
            finally:
                opening.__exit__(None, None, None)
                place.settle()
            return

    def _left_out(self, request: ModelRequest) -> frozenset[str]:
        """What the service was found not to take: of any request, or of one like this."""
        if not self._refused:
            return self._refused
        return self._refused | {
            name for name in self.optional_parameters if self._refusal_key(name, request) in self._refused
        }

    def _refusal_key(self, name: str, request: ModelRequest) -> str:
        """Under what it is remembered. What a caller wrote may be named in a refusal: it is held against that alone."""
        if name not in self.optional_parameters:
            return name
        if name == self.schema_parameter and request.output_schema is not None:
            schema = json.dumps(request.output_schema, sort_keys=True)
            name = f"{name} {hashlib.sha256(schema.encode(errors='replace')).hexdigest()[:16]}"
        return refusal_key(name, request.model)

    def _warn_unsupported(self, request: ModelRequest) -> None:
        for name in self.unsupported_options:
            if getattr(request.options, name) is not None and name not in self._refused:
                self._refused |= {name}
                log.warning("the service has no such option", provider=self.name, left_out=name)

    def _connected_client(self, sdk: Any) -> Any:
        # A client inherited through fork shares its sockets with the parent.
        if self._client is None or self._client_pid != os.getpid():
            with self._lock:
                if self._client is None or self._client_pid != os.getpid():
                    self._client = self._make_client(sdk)
                    self._client_pid = os.getpid()
        return self._client

    def _sdk(self) -> Any:
        try:
            return importlib.import_module(self.sdk_name)
        except ModuleNotFoundError as error:
            raise self._sdk_missing() from error

    def _sdk_missing(self) -> SetupError:
        return SetupError(
            f"the provider {self.name!r} needs the package {self.sdk_name!r}; "
            f"install it with: pip install 'brainq[{self.sdk_name}]'"
        )


def _complete_reply(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """The reply with what its service left out: the model's name, also in its reasoning, and estimates of uncounted
    tokens.

    llama.cpp's stream on Anthropic's wire begins without model and input tokens if an emoji comes first.
    """
    reply = with_usage(reply, request)
    if not reply.usage.input_tokens:
        usage = reply.usage.model_copy(update={"input_tokens": estimate_request(request), "estimated": True})
        reply = reply.model_copy(update={"usage": usage})
    if reply.reasoning:
        thoughts = [thought.model_copy(update={"model": request.model}) for thought in reply.reasoning]
        reply = reply.model_copy(update={"reasoning": tuple(thoughts)})
    return reply if reply.model else reply.model_copy(update={"model": request.model})


def _parse(read: Callable[[dict[str, Any]], T], value: dict[str, Any]) -> T:
    """`read(value)`; ValueError also where `value` has quite another shape than the API's."""
    try:
        return read(value)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"not the shape of the API: {error}") from error


def _postpone_cut(pieces: Iterable[bytes], pace: Pace, cutoff: DeadlineCut) -> Iterator[bytes]:
    """`pieces`, each of which is a sign of life: some services send pings while the model is silent."""
    for piece in pieces:
        cutoff.move(pace.allowed_s())
        yield piece


def _drain(stream: Iterator[object], cutoff: DeadlineCut) -> None:
    """Read to the end of the answer, so that the connection can serve the next call.

    The end follows the end marker at once; if the server holds the stream open, the connection is given up.
    """
    cutoff.finish_within(DRAIN_S)
    try:
        for _ in stream:
            pass
    except Exception:
        pass  # the reply is complete; only the connection is lost
