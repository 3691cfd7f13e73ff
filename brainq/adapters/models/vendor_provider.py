"""The common part of the providers on a vendor's SDK: client, deadline, retries, and refused parts of requests."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib.util import find_spec
from typing import Any

from brainq.adapters.models.attachments import (
    SHOWABLE_KINDS,
    UNREADABLE_FILES,
    AttachmentBlocks,
    is_unreadable,
    refused_attachment_kind,
)
from brainq.adapters.models.failures import (
    error_body,
    from_sdk_error,
    may_have_been_processed,
    note_http_answer,
    refusal_key,
    refused_parameter,
)
from brainq.adapters.models.open_answer import OpenAnswer, read_error
from brainq.adapters.models.stream_reader import StreamReader
from brainq.adapters.models.wire import with_extra_parameters
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.asking.permits import ServiceRequest, permit_for
from brainq.engine.models.asking.rate_permit import account_digest
from brainq.engine.models.asking.retry import RetryPolicy, call_with_retry, stream_with_retry
from brainq.engine.models.asking.stall_clock import Deadline, StallClock
from brainq.engine.models.providers import keeps_limits
from brainq.errors import SetupError
from brainq.runtime.observe.logs import logger

log = logger("brainq.models")
CONNECT_TIMEOUT_S = 10.0
PERMIT_CONNECT_TIMEOUT_S = 4.0  # a request must arrive while its permit counts
MAX_REMEMBERED_REFUSALS = 1000


class VendorProvider(ABC):
    """A provider on a vendor's SDK.

    The SDK makes the connection, authenticates and maps statuses to exceptions. Its own retries are off, because they
    respect neither the deadline nor the output that was already shown. One client, made at the first use, serves all
    threads and keeps its connections.

    sdk_name: the SDK's module, and the extra that installs it.
    vendor_url: the address of requests if neither `base_url` nor the variable `url_variable` gives one.
    optional_parameters: left out of a model's requests once the server has refused them.
    schema_parameter: the one of them that holds the schema of the answer. The refusal may be about this schema only.
    unsupported_options: options without a parameter in its API.
    left_out_once: parts that are left out of the refused request only.
    """

    sdk_name: str
    default_name: str
    vendor: str
    vendor_url: str
    key_variable: str
    url_variable: str
    key_remedy: str
    takes_permits = True
    optional_parameters: tuple[str, ...] = ()
    schema_parameter: str = ""
    unsupported_options: tuple[str, ...] = ()
    left_out_once: frozenset[str] = frozenset({UNREADABLE_FILES})

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        name: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.name = name or self.default_name
        self._base_url = base_url or os.environ.get(self.url_variable) or None
        self._api_key = api_key or os.environ.get(self.key_variable) or ("none" if self._base_url else None)
        self._account = account_digest(self._base_url, self._api_key)
        self._retry = retry or RetryPolicy()
        self._lock = threading.Lock()
        self._client: Any = None
        self._client_pid = 0
        self._refused: frozenset[str] = frozenset()

    @abstractmethod
    def _make_client(self, sdk: Any) -> Any:
        """Return a client with the SDK's retries switched off."""

    @abstractmethod
    def _body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        """Return the request as keyword arguments of the SDK, without the `refused` parameters."""

    def _refusal(self, request: ModelRequest, status: int, body: Any) -> str | None:
        """Return the part that the request must be sent without, as this answer says, or None."""
        if is_unreadable(request, status, body):
            return UNREADABLE_FILES
        kind = refused_attachment_kind(request, status, body)
        return (
            refusal_key(f"{kind}s", request.model)
            if kind
            else refused_parameter(status, body, self.optional_parameters)
        )

    def _blocks(self, request: ModelRequest, refused: frozenset[str]) -> AttachmentBlocks:
        """Return the blocks of the request's attachments, without the kinds that its model has refused."""
        if UNREADABLE_FILES in refused:
            return AttachmentBlocks(request.blobs, frozenset(SHOWABLE_KINDS))
        return AttachmentBlocks(
            request.blobs,
            frozenset(kind for kind in SHOWABLE_KINDS if refusal_key(f"{kind}s", request.model) in refused),
        )

    @abstractmethod
    def _send(self, client: Any, body: dict[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        """Return the SDK's streaming response (`iter_bytes`, `read`, `http_response`) to `body`."""

    @abstractmethod
    def _read_whole(self, request: ModelRequest, body: dict[str, Any]) -> ModelReply:
        """Return the reply in an unstreamed answer. Raises ValueError if there is none."""

    @abstractmethod
    def _new_reader(self, request: ModelRequest) -> StreamReader:
        """Return a reader for one stream."""

    def generate(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. Also raises SetupError if the SDK or the API key is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return call_with_retry(partial(self._request_whole, request, deadline), deadline, self._retry)

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """Yield the chunks of the reply. Also raises SetupError if the SDK or the API key is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return stream_with_retry(partial(self._request_stream, request, deadline), deadline, self._retry)

    @property
    def server_url(self) -> str:
        return self._base_url or self.vendor_url

    def _require_key(self) -> str:
        if self._api_key is None:
            raise SetupError(f"no API key for {self.vendor}; {self.key_remedy}")
        return self._api_key

    def check(self) -> None:
        """Raise SetupError if the API key or the SDK is missing. The SDK is looked up, but not imported."""
        self._require_key()
        if find_spec(self.sdk_name) is None:
            raise self._sdk_missing()

    def warm_up(self) -> None:
        """Import the SDK and make the client before a deadline runs, which takes up to a second. This is optional.

        Raises SetupError if the SDK or the API key is missing.
        """
        self._connected_client(self._sdk())

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _request_whole(self, request: ModelRequest, deadline: Deadline) -> ModelReply:
        with self._open_answer(request, deadline, stream=False) as answer:
            return answer.reply(partial(self._read_whole, request))

    def _request_stream(self, request: ModelRequest, deadline: Deadline) -> Generator[ModelChunk]:
        with self._open_answer(request, deadline, stream=True) as answer:
            if answer.is_json:  # a server that ignores `stream`
                yield from answer.reply_as_chunks(partial(self._read_whole, request))
            else:
                yield from answer.chunks(self._new_reader(request))

    def _open_answer(self, request: ModelRequest, deadline: Deadline, *, stream: bool) -> OpenAnswer:
        """Send the request with a permit. It is sent again at once without a part that this server refuses."""
        sdk = self._sdk()
        client = self._connected_client(sdk)
        self._warn_unsupported(request)
        once: frozenset[str] = frozenset()
        refused = self._left_out(request)
        body = self._whole_body(request, stream=stream, refused=refused)
        while True:
            sent = permit_for(self.name, request.model, self._account)
            sent.acquire(request, deadline.remaining_s())
            silence_limits = (request.first_token_s, request.idle_s) if stream else ()
            clock = StallClock(deadline, *silence_limits)
            try:
                opening = self._send(client, body, _timeout(sdk, sent, clock))
                return OpenAnswer(request, sdk, opening, sent, clock)
            except sdk.APIStatusError as error:
                note_http_answer(sent, error.response.headers, error.status_code)
                known = from_sdk_error(error, sdk, self.name)
                sent.settle(known)
                named = self._refusal(request, error.status_code, error_body(error))
                if named is None or named in refused:
                    raise known from error
                once |= self._remember_refusal(named, request)
                refused, sent = self._left_out(request) | once, body
                body = self._whole_body(request, stream=stream, refused=refused)
                if body == sent:  # The refusal is about a part that was not sent.
                    raise known from error
            except BaseException as error:
                sent.settle(error, was_processed=may_have_been_processed(error, sdk, stream=stream))
                if not isinstance(error, Exception):
                    raise
                raise read_error(self.name, error, sdk, clock) from error

    def _whole_body(self, request: ModelRequest, *, stream: bool, refused: frozenset[str]) -> dict[str, Any]:
        try:
            return with_extra_parameters(self._body(request, stream=stream, refused=refused), request.options)
        except Exception as error:
            raise from_sdk_error(error, self._sdk(), self.name) from error

    def _remember_refusal(self, name: str, request: ModelRequest) -> frozenset[str]:
        """Leave a refused part out of further requests, and return the parts to leave out of the next request only."""
        if name in self.left_out_once or len(self._refused) >= MAX_REMEMBERED_REFUSALS:
            return frozenset({name})
        self._refused |= {self._refusal_key(name, request)}
        log.warning(
            "the service refuses a part of requests; brainq omits it from now on", provider=self.name, left_out=name
        )
        return frozenset()

    def _left_out(self, request: ModelRequest) -> frozenset[str]:
        """Return what the service has refused, of any request or of one like this."""
        if not self._refused:
            return self._refused
        return self._refused | {
            name for name in self.optional_parameters if self._refusal_key(name, request) in self._refused
        }

    def _refusal_key(self, name: str, request: ModelRequest) -> str:
        """Return the key of a refusal. If it may be about the caller's own schema, it counts for this schema only."""
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


def _timeout(sdk: Any, sent: ServiceRequest, clock: StallClock) -> Any:
    connect_s = PERMIT_CONNECT_TIMEOUT_S if sent.permit.is_acquired else CONNECT_TIMEOUT_S
    remaining_s = max(clock.allowed_s(), 0.001)
    return sdk.Timeout(remaining_s, connect=min(remaining_s, connect_s))
