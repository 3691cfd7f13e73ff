"""The server of `brainq serve`. It cuts slow connections, reports readiness, and stops without losing streams."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from brainq.adapters.sql.store import Store
from brainq.app.access import Tokens
from brainq.app.access.tokens import AWAY_S
from brainq.client.async_client import AsyncClient
from brainq.client.connection import cells_of
from brainq.engine.brain.brains import BrainsArgument, read_brains
from brainq.errors import CellUnreachable, NotFound, SetupError
from brainq.fleet.all_cells import read_all_gauges
from brainq.gateway.app import make_app
from brainq.gateway.edge.authentication import NO_TOKEN_YET, Authenticator, make_authenticator
from brainq.gateway.edge.caller_rates import CallerRates
from brainq.gateway.edge.client_address import proxy_options
from brainq.gateway.edge.limits import StreamLimiter
from brainq.gateway.edge.request import CachedCall, Gateway
from brainq.runtime.observe.metrics.export import start_metrics
from brainq.runtime.observe.otel_setup import start_traces, stop_telemetry
from brainq.runtime.observe.threads import thread_problems
from brainq.runtime.settings.deployment import Settings

BACKLOG = 2048
LONG_WORK_THREADS = 4


class TimedConnection(H11Protocol):
    """A connection that is cut if the client sends its headers or reads its answer too slowly."""

    slow_s = 20.0
    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._head = self.loop.call_later(self.slow_s, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._head = _cancel_timer(self._head)
        elif self._head is None and self.cycle.response_complete:
            # The connection's next request begins, and uvicorn's keep-alive timer has just ended.
            self._head = self.loop.call_later(self.slow_s, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.slow_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancel_timer(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._unread = _cancel_timer(self._head), _cancel_timer(self._unread)
        super().connection_lost(exc)


def _cancel_timer(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def connection_class(slow_s: float) -> type[TimedConnection]:
    """Return the class of connections whose clients have `slow_s` seconds."""
    return type("Connection", (TimedConnection,), {"slow_s": slow_s})


def readiness_check(client: AsyncClient, authenticator: Authenticator) -> CachedCall[None]:
    """Return a check that raises if Redis or SQL does not answer, no valid token exists or a background thread failed.

    It is cached, because its route is public and not rate-limited.
    """

    async def check() -> None:
        await client.ping()
        try:
            await client.handle("readyz")
        except (NotFound, CellUnreachable):  # SQL answered; with several cells, one is enough
            pass
        if not await authenticator.admits_anyone():
            raise SetupError(NO_TOKEN_YET)
        if problems := thread_problems():
            raise SetupError(f"{problems[0]}; see the gateway's log for the reason")

    return CachedCall(check)


def serve(
    settings: Settings,
    brains: BrainsArgument,
    ready: Callable[[Authenticator], None],
    listener: socket.socket | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl+C. `settings` must name a Redis.

    ready      called once the server listens
    listener   a bound socket to listen on instead of the settings' address
    """
    stops = [start_traces("gateway")]
    try:
        with Store.open(settings.sql_address, keys=settings.key_place) as store:
            authenticator = make_authenticator(settings, Tokens(store, away_s=AWAY_S if settings.in_cells else 0.0))
            gateway = make_gateway(settings, brains, authenticator)
            stops.append(start_metrics("gateway", lambda: read_all_gauges(cells_of(gateway.client))))
            GatewayServer(gateway, lambda: ready(authenticator)).run(None if listener is None else [listener])
    finally:
        stop_telemetry(stops)


def make_gateway(settings: Settings, brains: BrainsArgument, authenticator: Authenticator) -> Gateway:
    found = read_brains(brains)
    client = AsyncClient(settings, found)
    return Gateway(
        settings=settings,
        brains=found,
        client=client,
        authenticator=authenticator,
        caller_rates=CallerRates(authenticator, settings.http_requests_s),
        streams=StreamLimiter(settings.http_streams, settings.http_streams_a_caller),
        readiness=readiness_check(client, authenticator),
        metrics=CachedCall(client.metrics),
        long_work=ThreadPoolExecutor(LONG_WORK_THREADS, "brainq-long"),
    )


class GatewayServer(uvicorn.Server):
    """A server that ends its streams when it stops."""

    def __init__(self, gateway: Gateway, ready: Callable[[], None]) -> None:
        settings = gateway.settings
        self._gateway = gateway
        self._ready = ready
        super().__init__(
            uvicorn.Config(
                make_app(gateway),
                host=settings.http_host,
                port=settings.http_port,
                http=connection_class(settings.http_slow_s),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=max(1, round(settings.http_grace_s)),
                **proxy_options(settings),
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn raises the signal that stopped it again, but a requested stop must not kill the process.
        before = signal.signal(signal.SIGTERM, _ignore_signal)
        try:
            super().run(sockets)
        finally:
            signal.signal(signal.SIGTERM, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()  # close first, so that clients which reconnect reach another gateway
        self._gateway.streams.stop()
        await super().shutdown(sockets)


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """Ignore the signal, because the server has already ended."""
