"""What `brainq dev` does: look, start everything, keep it running, stop it."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path

from rich.console import Console
from rich.text import Text

from brainq.brain import Brain
from brainq.brains import Brains
from brainq.cli.flower import LOOPBACK, PORT
from brainq.cli.logs import LogFollower
from brainq.cli.output import stdout
from brainq.cli.reloading import Reloader, require_watchfiles
from brainq.cli.running import Program, flower_program, gateway_program, keep_running, start_all, stop_all
from brainq.cli.serve import has_http
from brainq.cli.starting import ready_to_start
from brainq.cli.style import EFFECT_STYLES, counted, duration
from brainq.devserver.fleet import POOLS, Fleet
from brainq.devserver.instance import only_one
from brainq.devserver.probe import listener_at, require_free_port
from brainq.devserver.resolve import own_redis
from brainq.devserver.stopping import StopSignals
from brainq.observe.raises import TRACEBACK
from brainq.observe.urls import without_password
from brainq.providers.resolve import described
from brainq.settings import Settings, load_settings

GRACE_S = 10.0
STAND_IN = "offline:"


def run_dev(
    *, flower: bool, log_level: str, reload: bool, port: int | None = None, http: bool = True
) -> None:
    """Run until Ctrl+C or SIGTERM. Raises SetupError, before anything is started, when something is missing."""
    settings = load_settings()
    console = stdout()
    started = time.monotonic()
    with ExitStack() as stack:
        if reload:
            require_watchfiles()
        stack.enter_context(only_one(settings.data_dir, POOLS, "brainq dev"))
        if flower:
            require_free_port(LOOPBACK, PORT, "Flower", "`brainq flower --port`")
        if port is not None:
            require_free_port(LOOPBACK, port, "Redis", "`brainq dev --port`")
        told = settings.redis_url.get_secret_value() if settings.redis_url else None
        brains = ready_to_start(settings, redis_url=told, writes=settings.data_dir)
        # From here on things run that have to be stopped; until here Ctrl+C just ends this process.
        stop = stack.enter_context(StopSignals())
        _run(
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


def _run(
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
    url, server = stack.enter_context(own_redis(settings, port))
    logs = settings.data_dir.absolute() / "logs"
    environment = {
        "BRAINQ_REDIS_URL": url,
        "BRAINQ_APP": settings.app,
        "BRAINQ_LOG_LEVEL": os.environ.get("BRAINQ_LOG_LEVEL") or log_level,
        "PYTHONUNBUFFERED": "1",
    }
    environment[TRACEBACK] = "1"  # what your tools raise is shown in full
    fleet = Fleet(logs, environment, log_level=log_level.upper())
    follower = LogFollower(fleet, console)
    gateways: list[Program] = []
    others: list[Program] = [flower_program(logs, environment)] if flower else []
    served = 0
    if http and has_http():
        # Bound here and handed over: between a look and the gateway's own bind, somebody else could take the port.
        listener = stack.enter_context(listener_at(LOOPBACK, settings.http_port))
        served = int(listener.getsockname()[1])
        at = {"BRAINQ_HTTP_HOST": LOOPBACK, "BRAINQ_HTTP_PORT": str(served)}
        gateways.append(gateway_program(logs, environment | at, GRACE_S, listener))
        others += gateways
    for other in others:
        stack.callback(other.stop)
        other.launch()
    _print_places(console, settings, brains, url, logs, flower=flower, port=port, http=_http(http, served))
    follower.skip()
    stack.callback(stop_all, fleet, console, stop, GRACE_S)
    with console.status("starting the workers") if console.is_terminal else nullcontext():
        if not start_all(fleet, others, stop):
            return
    follower.skip()
    console.print(Text(f"ready in {duration((time.monotonic() - started) * 1000)}", style="bold green"))
    _print_next(console, settings, brains, reload=reload)
    reloader = Reloader(fleet, gateways, follower, console)
    with reloader.watching(Path.cwd()) if reload else nullcontext():
        kept = [*([server] if server else []), *others]
        keep_running(fleet, kept, follower, console, stop, reloader.look)


def _print_places(
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
        **_brains(settings.app, brains),
        "redis": Text(without_password(url)).append(
            "  from BRAINQ_REDIS_URL" if not own else "  its own", "dim"
        ),
        **({"port": _port(port)} if port else {}),
        "sql": Text(without_password(settings.sql_url.get_secret_value())),
        "http": http,
        "logs": Text(f"{logs}/*.log"),
        **({"flower": Text(f"http://{LOOPBACK}:{PORT}")} if flower else {}),
    }
    for name, value in rows.items():
        console.print(Text(f"  {name:<8}", "bold").append_text(value), soft_wrap=True)


def _brains(app: str, brains: Brains) -> dict[str, Text]:
    if len(brains) == 1:
        brain = brains.default
        return {"brain": Text(app + ", ").append_text(_tools(brain)), "model": _model(brain)}
    lines = [
        Text(brain.name, "bold")
        .append(", ")
        .append_text(_tools(brain))
        .append(", ")
        .append_text(_model(brain))
        for brain in brains
    ]
    named = Text(f"{app}, {len(brains)}, of which {brains.default.name} has the turns that name none")
    return {"brains": Text("\n          ").join([named, *lines])}


def _tools(brain: Brain) -> Text:
    effects = Counter(spec.effect.value for spec in brain.tools.specs.values())
    tools = Text(", ").join(
        Text(f"{count} {effect}", EFFECT_STYLES[effect]) for effect, count in effects.items()
    )
    said = Text(counted(len(brain.tools.specs), "tool"))
    return said.append(": ").append_text(tools) if effects else said


def _http(wanted: bool, port: int) -> Text:
    if port:
        return Text(f"http://{LOOPBACK}:{port}").append("  a page to look at turns, and HTTP", "dim")
    return Text("none", "dim").append(
        "" if not wanted else "; pip install 'brainq[http]' for turns over HTTP"
    )


def _port(port: int) -> Text:
    return Text(f"redis://{LOOPBACK}:{port}/0").append("  the same, for producers without brainq", "dim")


def _model(brain: Brain) -> Text:
    if not isinstance(brain.model, str):
        return Text(described(brain.model))
    if not brain.model.startswith(STAND_IN):
        return Text(brain.model)
    return Text(brain.model).append(
        "  no language model: it calls tools named in a message\n"
        '          for a real one: Brain(model="openai:gpt-4.1-mini"), and OPENAI_API_KEY',
        "yellow",
    )


def _print_next(console: Console, settings: Settings, brains: Brains, *, reload: bool) -> None:
    app = "" if settings.app == "app:brain" else f" -A {settings.app}"
    console.print(
        f'\nIn another terminal, here: brainq{app} submit s1 "{_first_words(brains.default)}" --follow'
    )
    if not reload:
        console.print(
            "The workers keep the code they began with; --reload takes up what you change.", style="dim"
        )
    console.print("Ctrl+C stops everything. What the workers warn of comes below.\n", style="dim")


def _first_words(brain: Brain) -> str:
    """The stand-in answers a greeting with a list of tools; the name of one has it say how to call that."""
    stands_in = isinstance(brain.model, str) and brain.model.startswith(STAND_IN)
    return next(iter(brain.tools.specs), "Hello!") if stands_in else "Hello!"
