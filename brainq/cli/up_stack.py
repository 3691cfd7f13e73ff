"""What `brainq up` does: look, start the pools, keep them running, stop them."""

from __future__ import annotations

import os
from contextlib import ExitStack

from rich.console import Console

from brainq.cli.flower import LOOPBACK, PORT
from brainq.cli.logs import LogFollower
from brainq.cli.output import stdout
from brainq.cli.running import flower_program, gateway_program, keep_running, stop_all
from brainq.cli.serve import require_http
from brainq.cli.starting import ready_to_start
from brainq.devserver.fleet import POOLS, Fleet
from brainq.devserver.instance import only_one
from brainq.devserver.probe import require_free_port
from brainq.devserver.resolve import own_redis
from brainq.devserver.stopping import StopSignals
from brainq.errors import InvalidInput
from brainq.observe.urls import without_password
from brainq.settings import load_settings

GRACE_S = 60.0
FLOWER, GATEWAY = OTHERS = ("flower", "gateway")


def run_up(wanted: list[str], *, log_level: str) -> None:
    """Run until Ctrl+C or SIGTERM. Raises SetupError, before anything is started, when something is missing."""
    unknown = [name for name in wanted if name not in (*POOLS, *OTHERS)]
    if unknown:
        raise InvalidInput("POOL", f"{', '.join(unknown)} is none of {', '.join((*POOLS, *OTHERS))}")
    pools = [pool for pool in POOLS if pool in wanted or not wanted]
    beside = [name for name in OTHERS if name in wanted]
    settings = load_settings()
    console = stdout()
    with ExitStack() as stack:
        stack.enter_context(only_one(settings.data_dir, [*pools, *beside], "brainq up"))
        if FLOWER in beside:
            require_free_port(LOOPBACK, PORT, "Flower", "`brainq flower --port`")
        if GATEWAY in beside:
            require_http()
            require_free_port(settings.http_host, settings.http_port, "the gateway", "BRAINQ_HTTP_PORT")
        told = settings.redis_url.get_secret_value() if settings.redis_url else None
        ready_to_start(settings, redis_url=told, writes=settings.data_dir)
        stop = stack.enter_context(StopSignals())
        url, server = stack.enter_context(own_redis(settings))
        environment = {
            "BRAINQ_REDIS_URL": url,
            "BRAINQ_APP": settings.app,
            "BRAINQ_LOG_LEVEL": os.environ.get("BRAINQ_LOG_LEVEL") or log_level,
            "PYTHONUNBUFFERED": "1",
        }
        logs = settings.data_dir.absolute() / "logs"
        fleet = Fleet(logs, environment, log_level=log_level.upper(), pools=pools)
        follower = LogFollower(fleet, console)
        follower.skip()
        others = [
            flower_program(logs, environment)
            if name == FLOWER
            else gateway_program(logs, environment, settings.http_grace_s + 2)
            for name in beside
        ]
        console.print(f"redis {without_password(url)}; running {', '.join([*pools, *beside])}", style="dim")
        stack.callback(stop_all, fleet, console, stop, GRACE_S)
        for other in others:
            stack.callback(other.stop)
            other.launch()
        for worker in fleet.workers:
            follower.hush(worker)
            fleet.launch(worker)
        kept = [*([server] if server else []), *others]
        keep_running(fleet, kept, follower, console, stop, _ReadyOnce(fleet, console).look)
    console.print("stopped", style="dim")


class _ReadyOnce:
    """Says once that all workers are ready."""

    def __init__(self, fleet: Fleet, console: Console) -> None:
        self._fleet = fleet
        self._console = console
        self._said = False

    def look(self) -> None:
        if not self._said and all(worker.is_ready for worker in self._fleet.workers):
            self._said = True
            self._console.print("ready", style="bold green")
