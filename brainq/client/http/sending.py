"""Sending requests to a gateway: repeats, timeouts, streams.

It is loaded when a client is made, because httpx takes longer to import than everything else of a client.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeAlias

import httpx

from brainq import __version__
from brainq.client.http.refusals import read_refusal
from brainq.errors import BrainqError, InvalidInput, NotFound, SetupError, Unreachable

FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 2.0
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""The failures of requests that never reached a gateway."""
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@dataclass(frozen=True, slots=True)
class Call:
    """A request.

    query: parameters; None leaves one out.
    missing: the error if the gateway has nothing with this id.
    is_repeatable: doing it twice is the same as doing it once. If not, it is repeated only if it was surely not done.
    remedy: what to look at, if it is not known whether it was done.
    wait_s: how long the gateway may wait before it answers, in addition to the client's read timeout.
    read_s: the read timeout, if it is not the client's.
    within_s: how long it is repeated at most, if that is less than the client's `retry_s`.
    request_key, client_message_id: under which a second try is the same submit, or the same input.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: type[NotFound] = NotFound
    is_repeatable: bool = True
    remedy: str = ""
    wait_s: float = 0.0
    read_s: float | None = None
    within_s: float | None = None
    request_key: str = ""
    client_message_id: str = ""


class LoopTransport:
    """A transport on an event loop."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def build(self, call: Call) -> httpx.Request:
        return _build(self._http, call)

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        return await self._http.send(request, stream=stream)

    async def read(self, response: httpx.Response) -> bytes:
        return await response.aread()

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        async for chunk in response.aiter_bytes():
            yield chunk

    async def sleep(self, pause_s: float) -> None:
        import asyncio

        await asyncio.sleep(pause_s)

    async def end(self, response: httpx.Response) -> None:
        await response.aclose()

    async def close(self) -> None:
        await self._http.aclose()


class BlockingTransport:
    """A transport that blocks the calling thread, so that its coroutines never wait."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def build(self, call: Call) -> httpx.Request:
        return _build(self._http, call)

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        return self._http.send(request, stream=stream)

    async def read(self, response: httpx.Response) -> bytes:
        return response.read()

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        for chunk in response.iter_bytes():
            yield chunk

    async def sleep(self, pause_s: float) -> None:
        time.sleep(pause_s)

    async def end(self, response: httpx.Response) -> None:
        response.close()

    async def close(self) -> None:
        self._http.close()


Transport: TypeAlias = LoopTransport | BlockingTransport


def open_transport(url: str, token: str, options: Mapping[str, Any], *, on_loop: bool) -> Transport:
    """Open connections to the gateway at `url`. `options` are httpx's. Raises InvalidInput."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("url", f"{url!r} is not the address of a gateway, such as https://brainq.example.com")
    headers = {"User-Agent": f"brainq/{__version__}", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    headers |= options.get("headers") or {}
    given: dict[str, Any] = {"timeout": TIMEOUT, "limits": LIMITS, **options, "base_url": url, "headers": headers}
    return LoopTransport(httpx.AsyncClient(**given)) if on_loop else BlockingTransport(httpx.Client(**given))


def _build(http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    content = None if call.body is None else json.dumps(call.body, allow_nan=False).encode()
    headers = dict(call.headers) if content is None else {"Content-Type": "application/json", **call.headers}
    query = {name: value for name, value in call.query.items() if value is not None}
    timeout, read_s = http.timeout, call.read_s
    if read_s is None and timeout.read is not None:
        read_s = timeout.read + call.wait_s
    own = httpx.Timeout(connect=timeout.connect, write=timeout.write, pool=timeout.pool, read=read_s)
    return http.build_request(call.method, call.path, params=query, content=content, headers=headers, timeout=own)


class Api:
    """The gateway as the verbs reach it.

    retry_s: for how long a request is repeated while no gateway answers, or while it answers that it cannot now.
    """

    def __init__(self, url: str, transport: Transport, retry_s: float) -> None:
        self._url = url
        self._transport = transport
        self._retry_s = retry_s

    def get(self, path: str, query: Mapping[str, Any] | None = None, **more: Any) -> Call:
        return Call("GET", path, query or {}, **more)

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, once: str = "", **more: Any) -> Call:
        """Return a POST. `once` is the remedy of one that may not be repeated."""
        return Call("POST", path, body=body or {}, is_repeatable=not once, remedy=once, **more)

    def put(self, path: str, body: Mapping[str, Any]) -> Call:
        return Call("PUT", path, body=body)

    def delete(self, path: str, query: Mapping[str, Any] | None = None, **more: Any) -> Call:
        return Call("DELETE", path, query or {}, **more)

    async def json(self, call: Call) -> Any:
        """Return the answer's JSON. Raises the error that the gateway answers, or Unreachable."""
        return json.loads((await self.answer(call)).content)

    async def answer(self, call: Call) -> httpx.Response:
        """Return the whole answer. Raises as `json`."""
        return await self._send(call, stream=False)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes] | None]:
        """Yield the pieces of a stream, or None if there is nothing more to stream. Raises as `json`."""
        response = await self._send(call, stream=True)
        try:
            yield None if response.status_code == 204 else self._transport.chunks(response)
        finally:
            await self._transport.end(response)

    async def sleep(self, pause_s: float) -> None:
        await self._transport.sleep(pause_s)

    async def close(self) -> None:
        await self._transport.close()

    async def _send(self, call: Call, *, stream: bool) -> httpx.Response:
        retry_s = self._retry_s if call.within_s is None else min(call.within_s, self._retry_s)
        until, pause_s = monotonic() + retry_s, FIRST_PAUSE_S
        while True:
            try:
                response = await self._transport.send(self._transport.build(call), stream=stream)
            except httpx.TransportError as lost:
                error: BrainqError = self._unreachable(call, lost)
                is_undone, wait_s = isinstance(lost, UNSENT), pause_s
            else:
                if response.is_success:
                    return response
                body = await self._transport.read(response)
                refusal = read_refusal(
                    response.status_code, response.headers.get("Retry-After", ""), body, call.missing
                )
                if not refusal.is_passing:
                    raise refusal.error
                error, is_undone = refusal.error, refusal.is_undone
                wait_s = pause_s if refusal.retry_after_s is None else refusal.retry_after_s
            if not (call.is_repeatable or is_undone):
                raise Unreachable(f"{error}. Whether it was done is not known: {call.remedy}") from error
            if monotonic() + wait_s > until:
                raise error
            await self._transport.sleep(wait_s)
            pause_s = min(MAX_PAUSE_S, 2 * pause_s)

    def _unreachable(self, call: Call, lost: httpx.TransportError) -> BrainqError:
        if "CERTIFICATE_VERIFY_FAILED" in str(lost):
            raise SetupError(
                f"the certificate of {self._url} is not trusted ({lost}); pass verify=ssl.create_default_context("
                "cafile=...) with the CA that signed it"
            ) from lost
        again = ""
        if call.request_key:
            again = f". Submit it again with request_key={call.request_key!r}, and it is the same turn"
        elif call.client_message_id:
            again = f". Send it again with client_message_id={call.client_message_id!r}, and it is the same input"
        return Unreachable(
            f"the gateway at {self._url} does not answer ({type(lost).__name__}: {lost}){again}",
            request_key=call.request_key,
            client_message_id=call.client_message_id,
        )
