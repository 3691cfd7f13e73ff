"""Gateways for tests: real uvicorn on a real socket, in a thread of this process or in a separate process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from starlette.routing import BaseRoute

from brainq.adapters.sql.store import Store
from brainq.app.access import Tokens
from brainq.app.devserver.ports import free_port
from brainq.engine.brain.brains import BrainsArgument
from brainq.gateway.edge.authentication import make_authenticator
from brainq.gateway.server import GatewayServer, make_gateway
from brainq.runtime.settings.deployment import Settings

ROOT = Path(__file__).parents[2]


_routes: dict[bool, list[BaseRoute]] = {}


def _share_routes(app: Any, with_a2a: bool) -> None:
    """Give the application the routes of the first one, because FastAPI computes them at the first request, in 0.1
    s."""
    *found, document = app.router.routes  # what the document says is the application's own
    app.router.routes[:] = [*_routes.setdefault(with_a2a, found), document]


class GatewayThread:
    """A gateway in a thread, with `http` to call it. Settings of the gateway come without their `http_`."""

    def __init__(self, settings: Settings, brain: BrainsArgument, **given: Any) -> None:
        ours = {f"http_{name}": value for name, value in given.items()}
        self.settings = settings.model_copy(update={"http_port": free_port(), **ours})
        self.url = f"http://127.0.0.1:{self.settings.http_port}"
        self.http = httpx.Client(base_url=self.url, timeout=120, verify=False)  # no TLS: its roots take 0.1 s
        self._brain = brain
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gateway")
        self.server: GatewayServer | None = None
        self.failure: BaseException | None = None

    def _run(self) -> None:
        try:
            with Store.open(self.settings.sql_url.get_secret_value()) as store:
                who = make_authenticator(self.settings, Tokens(store))
                gateway = make_gateway(self.settings, self._brain, who)
                self.gateway = gateway
                self.server = GatewayServer(gateway, self._is_ready.set)
                _share_routes(self.server.config.app, bool(self.settings.http_a2a))
                asyncio.run(self.server.serve())
        except BaseException as failure:
            self.failure = failure
        finally:
            self._is_ready.set()

    def start(self) -> Self:
        self._thread.start()
        assert self._is_ready.wait(60)
        assert self.failure is None, self.failure
        return self

    def stop(self) -> None:
        """Stop the gateway as SIGTERM does."""
        if self.server is not None:
            self.server.should_exit = True

    def stopped(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()
        self.stop()
        self.stopped()


class GatewayProcess:
    """A gateway as started by `brainq serve`: a process that reads all settings from the environment."""

    def __init__(
        self, directory: Path, environment: dict[str, str], *, inherited: Sequence[int] = (), port: int = 0
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = directory / f"gateway-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "brainq.workers.gateway"],
                cwd=ROOT,
                env={**os.environ, **environment, "BRAINQ_HTTP_PORT": str(self.port)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                pass_fds=inherited,
            )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        assert self.said, self.log.read_text()

    def kill(self) -> None:
        """Send SIGKILL, and check that this ended the process."""
        self.process.kill()
        assert self.process.wait(30) == -signal.SIGKILL

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
