"""The stack of `brainq dev` and of `brainq up`: checked, started, kept running and stopped."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path

from rich.console import Console
from rich.text import Text

from brainq.brain.brain import Brain
from brainq.brain.brains import Brains
from brainq.cli.commands.monitor import FLOWER_PORT, LOOPBACK
from brainq.cli.commands.run import has_http, require_http
from brainq.cli.dev.reload import Reloader, require_watchfiles
from brainq.cli.dev.startup import ready_to_start
from brainq.cli.dev.supervisor import (
    LogFollower,
    Program,
    StopSignals,
    flower_program,
    gateway_program,
    keep_running,
    start_all,
    stop_all,
)
from brainq.cli.output import EFFECT_STYLES, counted, duration, stdout
from brainq.devserver.local_fleet import POOLS, LocalFleet
from brainq.devserver.locks import exclusive_pools
from brainq.devserver.ports import listener_at, require_free_port
from brainq.devserver.redis_url import open_redis
from brainq.errors import InvalidInput
from brainq.models.resolve import describe_provider
from brainq.observe.log_redaction import without_password
from brainq.observe.tracebacks import TRACEBACK_VARIABLE
from brainq.settings.deployment import Settings, load_settings

# What `brainq dev` does: look, start everything, keep it running, stop it.

DEV_GRACE_S = 10.0

OFFLINE_PREFIX = "offline:"


def run_dev(*, flower: bool, log_level: str, reload: bool, port: int | None = None, http: bool = True) -> None:
    """Run until Ctrl+C or SIGTERM. Raises SetupError, before anything is started, when something is missing."""
    settings = load_settings()
    console = stdout()
    started = time.monotonic()
    with ExitStack() as stack:
        if reload:
            require_watchfiles()
        stack.enter_context(exclusive_pools(settings.data_dir, POOLS, "brainq dev"))
        if flower:
            require_free_port(LOOPBACK, FLOWER_PORT, "Flower", "`brainq flower --port`")
        if port is not None:
            require_free_port(LOOPBACK, port, "Redis", "`brainq dev --port`")
        configured_url = settings.redis_url.get_secret_value() if settings.redis_url else None
        brains = ready_to_start(settings, redis_url=configured_url, writes=settings.data_dir)
        # From here on things run that have to be stopped; until here Ctrl+C just ends this process.
        stop = stack.enter_context(StopSignals())
        _run_stack(
            settings,
            brains,
            console,
            stack,
            stop,
            started,
            flower=flower,
            log_level=log_level,
            reload=reload,
            port=port,
            http=http,
        )
    console.print("stopped; the data stays in " + str(settings.data_dir.absolute()), style="dim")


def _run_stack(
    settings: Settings,
    brains: Brains,
    console: Console,
    stack: ExitStack,
    stop: StopSignals,
    started: float,
    *,
    flower: bool,
    log_level: str,
    reload: bool,
    port: int | None,
    http: bool,
) -> None:
    url, server = stack.enter_context(open_redis(settings, port))
    logs = settings.data_dir.absolute() / "logs"
    environment = {
        "BRAINQ_REDIS_URL": url,
        "BRAINQ_APP": settings.app,
        "BRAINQ_LOG_LEVEL": os.environ.get("BRAINQ_LOG_LEVEL") or log_level,
        "PYTHONUNBUFFERED": "1",
    }
    environment[TRACEBACK_VARIABLE] = "1"  # what your tools raise is shown in full
    fleet = LocalFleet(logs, environment, log_level=log_level.upper())
    follower = LogFollower(fleet, console)
    gateways: list[Program] = []
    others: list[Program] = [flower_program(logs, environment)] if flower else []
    served = 0
    if http and has_http():
        # Bound here and passed on: between a check and the gateway's own bind, another process could take the port.
        listener = stack.enter_context(listener_at(LOOPBACK, settings.http_port))
        served = int(listener.getsockname()[1])
        at = {"BRAINQ_HTTP_HOST": LOOPBACK, "BRAINQ_HTTP_PORT": str(served)}
        gateways.append(gateway_program(logs, environment | at, DEV_GRACE_S, listener))
        others += gateways
    for other in others:
        stack.callback(other.stop)
        other.launch()
    _print_addresses(console, settings, brains, url, logs, flower=flower, port=port, http=_http_line(http, served))
    follower.skip_to_end()
    stack.callback(stop_all, fleet, console, stop, DEV_GRACE_S)
    with console.status("starting the workers") if console.is_terminal else nullcontext():
        if not start_all(fleet, others, stop):
            return
    follower.skip_to_end()
    console.print(Text(f"ready in {duration((time.monotonic() - started) * 1000)}", style="bold green"))
    _print_next_steps(console, settings, brains, reload=reload)
    reloader = Reloader(fleet, gateways, follower, console)
    with reloader.watching(Path.cwd()) if reload else nullcontext():
        programs = [*([server] if server else []), *others]
        keep_running(fleet, programs, follower, console, stop, reloader.restart_if_changed)


def _print_addresses(
    console: Console,
    settings: Settings,
    brains: Brains,
    url: str,
    logs: Path,
    *,
    flower: bool,
    port: int | None,
    http: Text,
) -> None:
    own = settings.redis_url is None
    rows = {
        **_brain_lines(settings.app, brains),
        "redis": Text(without_password(url)).append("  from BRAINQ_REDIS_URL" if not own else "  its own", "dim"),
        **({"port": _redis_port_line(port)} if port else {}),
        "sql": Text(without_password(settings.sql_url.get_secret_value())),
        "http": http,
        "logs": Text(f"{logs}/*.log"),
        **({"flower": Text(f"http://{LOOPBACK}:{FLOWER_PORT}")} if flower else {}),
    }
    for name, value in rows.items():
        console.print(Text(f"  {name:<8}", "bold").append_text(value), soft_wrap=True)


def _brain_lines(app: str, brains: Brains) -> dict[str, Text]:
    if len(brains) == 1:
        brain = brains.default
        return {"brain": Text(app + ", ").append_text(_tool_summary(brain)), "model": _model_line(brain)}
    lines = [
        Text(brain.name, "bold")
        .append(", ")
        .append_text(_tool_summary(brain))
        .append(", ")
        .append_text(_model_line(brain))
        for brain in brains
    ]
    named = Text(f"{app}, {len(brains)}, of which {brains.default.name} has the turns that name none")
    return {"brains": Text("\n          ").join([named, *lines])}


def _tool_summary(brain: Brain) -> Text:
    effects = Counter(spec.effect.value for spec in brain.tools.specs.values())
    tools = Text(", ").join(Text(f"{count} {effect}", EFFECT_STYLES[effect]) for effect, count in effects.items())
    summary = Text(counted(len(brain.tools.specs), "tool"))
    return summary.append(": ").append_text(tools) if effects else summary


def _http_line(wanted: bool, port: int) -> Text:
    if port:
        return Text(f"http://{LOOPBACK}:{port}").append("  a page to look at turns, and HTTP", "dim")
    return Text("none", "dim").append("" if not wanted else "; pip install 'brainq[http]' for turns over HTTP")


def _redis_port_line(port: int) -> Text:
    return Text(f"redis://{LOOPBACK}:{port}/0").append("  the same, for producers without brainq", "dim")


def _model_line(brain: Brain) -> Text:
    if not isinstance(brain.model, str):
        return Text(describe_provider(brain.model))
    if not brain.model.startswith(OFFLINE_PREFIX):
        return Text(brain.model)
    return Text(brain.model).append(
        "  no language model: it calls tools named in a message\n"
        '          for a real one: Brain(model="openai:gpt-4.1-mini"), and OPENAI_API_KEY',
        "yellow",
    )


def _print_next_steps(console: Console, settings: Settings, brains: Brains, *, reload: bool) -> None:
    app = "" if settings.app == "app:brain" else f" -A {settings.app}"
    console.print(f'\nIn another terminal, here: brainq{app} submit s1 "{_example_message(brains.default)}" --follow')
    if not reload:
        console.print("The workers keep the code they began with; --reload takes up what you change.", style="dim")
    console.print("Ctrl+C stops everything. What the workers warn of comes below.\n", style="dim")


def _example_message(brain: Brain) -> str:
    """The stand-in answers a greeting with a list of tools; the name of one has it say how to call that."""
    is_offline = isinstance(brain.model, str) and brain.model.startswith(OFFLINE_PREFIX)
    return next(iter(brain.tools.specs), "Hello!") if is_offline else "Hello!"


# What `brainq up` does: look, start the pools, keep them running, stop them.

UP_GRACE_S = 60.0

FLOWER, GATEWAY = OTHER_PROGRAMS = ("flower", "gateway")


def run_up(wanted: list[str], *, log_level: str) -> None:
    """Run until Ctrl+C or SIGTERM. Raises SetupError, before anything is started, when something is missing."""
    unknown = [name for name in wanted if name not in (*POOLS, *OTHER_PROGRAMS)]
    if unknown:
        raise InvalidInput("POOL", f"{', '.join(unknown)} is not one of {', '.join((*POOLS, *OTHER_PROGRAMS))}")
    pools = [pool for pool in POOLS if pool in wanted or not wanted]
    beside = [name for name in OTHER_PROGRAMS if name in wanted]
    settings = load_settings()
    console = stdout()
    with ExitStack() as stack:
        stack.enter_context(exclusive_pools(settings.data_dir, [*pools, *beside], "brainq up"))
        if FLOWER in beside:
            require_free_port(LOOPBACK, FLOWER_PORT, "Flower", "`brainq flower --port`")
        if GATEWAY in beside:
            require_http()
            require_free_port(settings.http_host, settings.http_port, "the gateway", "BRAINQ_HTTP_PORT")
        configured_url = settings.redis_url.get_secret_value() if settings.redis_url else None
        ready_to_start(settings, redis_url=configured_url, writes=settings.data_dir)
        stop = stack.enter_context(StopSignals())
        url, server = stack.enter_context(open_redis(settings))
        environment = {
            "BRAINQ_REDIS_URL": url,
            "BRAINQ_APP": settings.app,
            "BRAINQ_LOG_LEVEL": os.environ.get("BRAINQ_LOG_LEVEL") or log_level,
            "PYTHONUNBUFFERED": "1",
        }
        logs = settings.data_dir.absolute() / "logs"
        fleet = LocalFleet(logs, environment, log_level=log_level.upper(), pools=pools)
        follower = LogFollower(fleet, console)
        follower.skip_to_end()
        others = [
            flower_program(logs, environment)
            if name == FLOWER
            else gateway_program(logs, environment, settings.http_grace_s + 2)
            for name in beside
        ]
        console.print(f"redis {without_password(url)}; running {', '.join([*pools, *beside])}", style="dim")
        stack.callback(stop_all, fleet, console, stop, UP_GRACE_S)
        for other in others:
            stack.callback(other.stop)
            other.launch()
        for worker in fleet.workers:
            follower.mute(worker)
            fleet.launch(worker)
        programs = [*([server] if server else []), *others]
        keep_running(fleet, programs, follower, console, stop, _ReadyNotice(fleet, console).show_once)
    console.print("stopped", style="dim")


class _ReadyNotice:
    """Says once that all workers are ready."""

    def __init__(self, fleet: LocalFleet, console: Console) -> None:
        self._fleet = fleet
        self._console = console
        self._announced = False

    def show_once(self) -> None:
        if not self._announced and all(worker.is_ready for worker in self._fleet.workers):
            self._announced = True
            self._console.print("ready", style="bold green")
