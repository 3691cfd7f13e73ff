"""What `brainq serve` does: look, listen, and stop so that nobody loses what he reads."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import uvicorn

from brainq.access import Tokens
from brainq.brains import GivenBrains, read_brains
from brainq.client.async_client import AsyncClient
from brainq.client.metrics import readings_of
from brainq.http.app import make_app
from brainq.http.connection import connection_of
from brainq.http.gateway import Gateway
from brainq.http.kept import Kept
from brainq.http.rate import Rate
from brainq.http.readiness import readiness_of
from brainq.http.streams import Streams
from brainq.http.who import Who, who_asks
from brainq.http_settings import listed
from brainq.observe.metrics.export import start_metrics
from brainq.observe.otel_setup import start_traces
from brainq.settings import Settings
from brainq.store.store import Store

BACKLOG = 2048
LONG_AT_ONCE = 4


def serve(
    settings: Settings,
    brains: GivenBrains,
    ready: Callable[[Who], None],
    listener: socket.socket | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl+C. `ready` is called once it listens. `settings` name a Redis.

    listener   a bound socket to listen on, in place of one at the settings' address
    """
    stop_traces = start_traces("gateway")
    try:
        with Store.open(settings.sql_url.get_secret_value()) as store:
            who = who_asks(settings, Tokens(store))
            gateway = make_gateway(settings, brains, who)
            stop_metrics = start_metrics("gateway", lambda: readings_of(gateway.client))
            try:
                Server(gateway, lambda: ready(who)).run(None if listener is None else [listener])
            finally:
                stop_metrics()
    finally:
        stop_traces()


def make_gateway(settings: Settings, brains: GivenBrains, who: Who) -> Gateway:
    found = read_brains(brains)
    client = AsyncClient(settings, found)
    return Gateway(
        settings=settings,
        brains=found,
        client=client,
        who=who,
        callers=Rate(settings.http_requests_s),
        strangers=Rate(settings.http_requests_s),
        streams=Streams(settings.http_streams, settings.http_streams_a_caller),
        readiness=readiness_of(client, who),
        metrics=Kept(client.metrics),
        long_work=ThreadPoolExecutor(LONG_AT_ONCE, "brainq-long"),
    )


class Server(uvicorn.Server):
    """uvicorn's, which tells its streams that it stops."""

    def __init__(self, gateway: Gateway, ready: Callable[[], None]) -> None:
        settings = gateway.settings
        self._gateway = gateway
        self._ready = ready
        super().__init__(
            uvicorn.Config(
                make_app(gateway),
                host=settings.http_host,
                port=settings.http_port,
                http=connection_of(settings.http_slow_s),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(settings.http_proxies),
                forwarded_allow_ips=listed(settings.http_proxies),
                backlog=BACKLOG,
                timeout_graceful_shutdown=max(1, round(settings.http_grace_s)),
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn raises the signal that stopped it once more: a stop that was asked for is no death.
        before = signal.signal(signal.SIGTERM, _let_end)
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
            server.close()  # first: who comes again must not come here
        self._gateway.streams.stop()
        await super().shutdown(sockets)


def _let_end(number: int, frame: FrameType | None) -> None:
    """The server has ended by itself."""
