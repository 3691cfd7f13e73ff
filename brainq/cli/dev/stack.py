"""Check, start, keep running and stop the processes of `brainq dev` and `brainq up`."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from brainq.app.devserver.local_fleet import ALL, POOLS, LocalFleet
from brainq.app.devserver.locks import exclusive_pools
from brainq.app.devserver.ports import listener_at, require_free_port
from brainq.app.devserver.redis_server import EmbeddedServer, open_redis
from brainq.cli.commands.monitor import FLOWER_PORT, LOOPBACK, flower_command
from brainq.cli.commands.run import gateway_command, has_http, named_pools, require_http
from brainq.cli.dev.reload import Reloader, require_watchfiles
from brainq.cli.dev.startup import ready_to_start
from brainq.cli.dev.supervisor import POLL_S, LogFollower, Program, StopSignals, Supervisor, start_all
from brainq.cli.output import EFFECT_STYLES, counted, duration, stdout
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains
from brainq.engine.models.providers import describe_provider
from brainq.errors import InvalidInput
from brainq.runtime.observe.logs import outlive_full_log
from brainq.runtime.observe.tracebacks import TRACEBACK_VARIABLE
from brainq.runtime.processes.supervised import LISTENER_FD
from brainq.runtime.settings.deployment import Settings, load_settings
from brainq.runtime.text.service_url import without_password

DEV_GRACE_S, UP_GRACE_S = 10.0, 60.0
OFFLINE_PREFIX = "offline:"
FOR_PRODUCERS = "  the same server, for producers without brainq"
FLOWER, GATEWAY = OTHER_PROGRAMS = ("flower", "gateway")


class Stack:
    """The processes of one Redis: its servers, the workers of pools, and other programs.

    exits        stops everything that the stack starts
    stop         the stop signals; entered before the first of `servers` was started
    servers      the embedded Redis servers of this process
    fleet        the workers, not launched yet
    environment  the environment of the programs
    """

    def __init__(
        self,
        settings: Settings,
        exits: ExitStack,
        stop: StopSignals,
        servers: Sequence[EmbeddedServer],
        fleet: LocalFleet,
        environment: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.console = stdout()
        self.stop = stop
        self.logs = logs_of(settings)
        self.environment = environment
        self.fleet = fleet
        self.follower = LogFollower(self.fleet, self.console)
        self.programs: list[Program] = []
        self._servers = servers
        self._exits = exits

    def launch_flower(self) -> None:
        self._launch(Program("flower", flower_command(FLOWER_PORT), self.logs / "flower.log", self.environment))

    def launch_gateway(self, grace_s: float, listener: socket.socket | None = None, **environment: str) -> None:
        """Start the gateway. `listener` is a bound socket that the gateway also uses after a restart."""
        listens = () if listener is None else (listener.fileno(),)
        inherited = {LISTENER_FD: str(listens[0])} if listens else {}
        environment = {**self.environment, **environment, **inherited}
        log = self.logs / "gateway.log"
        self._launch(Program("gateway", gateway_command(), log, environment, grace_s=grace_s, passes=listens))

    def stop_workers_at_exit(self, grace_s: float) -> None:
        """Stop the workers at exit: before everything that was started earlier, and after everything started later."""
        self._exits.callback(self._stop_workers, grace_s)

    def keep_running(self, each_look: Callable[[], None]) -> None:
        """Print the workers' logs and restart processes that die, until a stop is requested."""
        children = [*self.fleet.workers, *self._servers, *self.programs]
        supervisor = Supervisor(children, lambda message: self.console.print(message, style="yellow"))
        shown = ""
        while not self.stop.stop_requested:
            time.sleep(POLL_S)
            for look in (self.follower.show, supervisor.check_all, each_look):
                try:
                    look()
                # The system refused a process, for example because no file descriptor is free. Running processes
                # continue.
                except OSError as failure:
                    if str(failure) != shown:
                        shown = str(failure)
                        self.console.print(f"could not check the processes ({failure}); retrying", style="yellow")

    def _launch(self, program: Program) -> None:
        self.programs.append(program)
        self._exits.callback(program.stop)
        program.launch()

    def _stop_workers(self, grace_s: float) -> None:
        """Let running work end within `grace_s`, or kill it at a second signal."""
        if self.stop.stop_requested:
            notice = f"stopping: running work has {grace_s:g} s to end; press Ctrl+C again to kill it now"
            self.console.print(f"\n{notice}", style="dim")
        self.fleet.stop(grace_s, lambda: self.stop.kill_requested)


def logs_of(settings: Settings) -> Path:
    return settings.data_dir.absolute() / "logs"


def process_environment(settings: Settings, log_level: str) -> dict[str, str]:
    """Return the environment that all workers and programs share."""
    return {
        "BRAINQ_APP": settings.app,
        "BRAINQ_LOG_LEVEL": os.environ.get("BRAINQ_LOG_LEVEL") or log_level,
        "PYTHONUNBUFFERED": "1",
    }


def open_stack(
    settings: Settings,
    exits: ExitStack,
    pools: Sequence[str],
    log_level: str,
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Stack, str]:
    """Return a stack on one Redis, and the URL of that Redis.

    From here on there are processes to stop. Before this call, Ctrl+C simply ends this process.
    """
    stop = exits.enter_context(StopSignals())
    url, server = exits.enter_context(open_redis(settings, port))
    given = {"BRAINQ_REDIS_URL": url, **process_environment(settings, log_level), **(environment or {})}
    fleet = LocalFleet(logs_of(settings), given, log_level=log_level.upper(), pools=pools)
    return Stack(settings, exits, stop, [server] if server else [], fleet, given), url


def check_start(settings: Settings) -> Brains:
    """Load the brains and check the services. Raises SetupError if something is missing."""
    url = settings.redis_url.get_secret_value() if settings.redis_url else None
    return ready_to_start(settings, redis_url=url, writes=settings.data_dir)


def run_dev(
    *, flower: bool, log_level: str, reload: bool, port: int | None = None, http: bool = True, apart: bool = False
) -> None:
    """Run Redis, all pools, the gateway and Flower until Ctrl+C or SIGTERM.

    apart: whether each pool has a worker process of its own.
    Raises SetupError before anything is started if something is missing.
    """
    outlive_full_log()
    settings, started = load_settings(), time.monotonic()
    with ExitStack() as exits:
        if reload:
            require_watchfiles()
        exits.enter_context(exclusive_pools(settings.data_dir, POOLS, "brainq dev"))
        if flower:
            require_free_port(LOOPBACK, FLOWER_PORT, "Flower", "`brainq flower --port`")
        if port is not None:
            require_free_port(LOOPBACK, port, "Redis", "`brainq dev --port`")
        brains = check_start(settings)
        # Workers print complete tracebacks of errors that the user's tools raise.
        pools = POOLS if apart else (ALL,)
        stack, url = open_stack(settings, exits, pools, log_level, port, {TRACEBACK_VARIABLE: "1"})
        if flower:
            stack.launch_flower()
        served = launch_dev_gateway(stack, exits) if http and has_http() else 0
        gateways = [program for program in stack.programs if program.name == GATEWAY]
        _print_addresses(stack, url, brains, flower=flower, port=port, http=http_line(http, served, settings.http_port))
        stack.follower.skip_to_end()
        stack.stop_workers_at_exit(DEV_GRACE_S)
        if start_workers(stack, started):
            _print_next_steps(stack.console, settings, brains, reload=reload)
            reloader = Reloader(stack.fleet, gateways, stack.console)
            with reloader.watching(Path.cwd()) if reload else nullcontext():
                stack.keep_running(reloader.restart_if_changed)
    stack.console.print("stopped; the data is kept in " + str(settings.data_dir.absolute()), style="dim")


def launch_dev_gateway(stack: Stack, exits: ExitStack) -> int:
    """Start the gateway and return its port: the one in the settings, or a free one if that is in use."""
    # The socket is bound here and passed on, because another process could take the port after a mere check.
    listener = exits.enter_context(listener_at(LOOPBACK, stack.settings.http_port))
    port = int(listener.getsockname()[1])
    stack.launch_gateway(DEV_GRACE_S, listener, BRAINQ_HTTP_HOST=LOOPBACK, BRAINQ_HTTP_PORT=str(port))
    return port


def start_workers(stack: Stack, started: float) -> bool:
    """Start the workers and wait until they are ready. Returns False if a stop was requested in the meantime."""
    with stack.console.status("starting the workers") if stack.console.is_terminal else nullcontext():
        if not start_all(stack.fleet, stack.programs, stack.stop):
            return False
    stack.follower.skip_to_end()
    stack.console.print(Text(f"ready in {duration((time.monotonic() - started) * 1000)}", style="bold green"))
    return True


def _print_addresses(stack: Stack, url: str, brains: Brains, *, flower: bool, port: int | None, http: Text) -> None:
    settings = stack.settings
    source = "its own" if settings.redis_url is None else "from BRAINQ_REDIS_URL"
    rows = {
        **brain_lines(settings.app, brains),
        "redis": Text(without_password(url)).append(f"  {source}", "dim"),
        **({"port": Text(f"redis://{LOOPBACK}:{port}/0").append(FOR_PRODUCERS, "dim")} if port else {}),
        "sql": Text(without_password(settings.sql_url.get_secret_value())),
        "http": http,
        "logs": Text(f"{stack.logs}/*.log"),
        **({"flower": Text(f"http://{LOOPBACK}:{FLOWER_PORT}")} if flower else {}),
    }
    print_rows(stack.console, rows)


def print_rows(console: Console, rows: Mapping[str, Text]) -> None:
    for name, value in rows.items():
        console.print(Text(f"  {name:<8}", "bold").append_text(value), soft_wrap=True)


def brain_lines(app: str, brains: Brains) -> dict[str, Text]:
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
    named = Text(f"{app}, {len(brains)} brains; the default is {brains.default.name}")
    return {"brains": Text("\n          ").join([named, *lines])}


def _tool_summary(brain: Brain) -> Text:
    effects = Counter(spec.effect.value for spec in brain.tools.specs.values())
    tools = Text(", ").join(Text(f"{count} {effect}", EFFECT_STYLES[effect]) for effect, count in effects.items())
    summary = Text(counted(len(brain.tools.specs), "tool"))
    return summary.append(": ").append_text(tools) if effects else summary


def http_line(wanted: bool, port: int, wanted_port: int) -> Text:
    if port:
        line = Text(f"http://{LOOPBACK}:{port}").append("  the web page and the HTTP API", "dim")
        if port != wanted_port:
            taken = (
                f"\n          port {wanted_port} is in use by another program; stop that program, or set "
                "BRAINQ_HTTP_PORT"
            )
            line.append(taken, "yellow")
        return line
    return Text("none", "dim").append("" if not wanted else "; pip install 'brainq[http]' for turns over HTTP")


def _model_line(brain: Brain) -> Text:
    if not isinstance(brain.model, str):
        return Text(describe_provider(brain.model))
    if not brain.model.startswith(OFFLINE_PREFIX):
        return Text(brain.model)
    return Text(brain.model).append(
        "  this is not a language model; it calls the tools that a message names\n"
        '          to use a real model: Brain(model="openai:gpt-4.1-mini"), and OPENAI_API_KEY',
        "yellow",
    )


def _print_next_steps(console: Console, settings: Settings, brains: Brains, *, reload: bool) -> None:
    app = "" if settings.app == "app:brain" else f" -A {settings.app}"
    command = f'brainq{app} submit s1 "{example_message(brains.default)}" --follow'
    console.print(f"\nIn a second terminal, in this directory: {command}")
    if not reload:
        console.print("With --reload, workers restart when your code changes.", style="dim")
    console.print("Ctrl+C stops everything. Warnings from the workers appear below.\n", style="dim")


def example_message(brain: Brain) -> str:
    """Return an example message. For the offline model it is a tool call in the syntax that the model understands, for
    a read-only tool if there is one.
    """
    specs = sorted(brain.tools.specs.values(), key=lambda spec: not spec.effect.is_read)
    if not specs or not isinstance(brain.model, str) or not brain.model.startswith(OFFLINE_PREFIX):
        return "Hello!"
    properties: dict[str, Any] = specs[0].parameters.get("properties", {})
    required: list[str] = specs[0].parameters.get("required", [])
    return f"{specs[0].name}({', '.join(f'{name}={_example_value(properties.get(name, {}))!r}' for name in required)})"


def _example_value(schema: dict[str, Any]) -> object:
    """Return a value that fits the type of a parameter's schema."""
    if "enum" in schema:
        return schema["enum"][0]
    examples: dict[object, object] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    return schema.get("minimum", examples.get(schema.get("type"), "A1"))


def chosen_workers(wanted: Sequence[str]) -> list[str]:
    """Return what `brainq up` starts a worker for: a pool, or several with commas between them, or `all`.

    Raises InvalidInput for an unknown name, and if a pool has two workers.
    """
    workers = [name for name in wanted if name not in OTHER_PROGRAMS] if wanted else [*POOLS]
    twice = [pool for pool, count in Counter(pools_of(workers)).items() if count > 1]
    if twice:
        raise InvalidInput("POOL", f"{', '.join(twice)} would have two workers; name each pool once")
    return workers


def pools_of(workers: Sequence[str]) -> list[str]:
    """Return the pools that these workers serve."""
    return [pool for worker in workers for pool in named_pools(worker, OTHER_PROGRAMS)]


def run_up(wanted: list[str], *, log_level: str) -> None:
    """Run the named pools and programs until Ctrl+C or SIGTERM. Raises the same errors as `run_dev`."""
    outlive_full_log()
    workers = chosen_workers(wanted)
    programs = [name for name in OTHER_PROGRAMS if name in wanted]
    settings = load_settings()
    with ExitStack() as exits:
        exits.enter_context(exclusive_pools(settings.data_dir, [*pools_of(workers), *programs], "brainq up"))
        if FLOWER in programs:
            require_free_port(LOOPBACK, FLOWER_PORT, "Flower", "`brainq flower --port`")
        if GATEWAY in programs:
            require_http()
            require_free_port(settings.http_host, settings.http_port, "the gateway", "BRAINQ_HTTP_PORT")
        check_start(settings)
        stack, url = open_stack(settings, exits, workers, log_level)
        stack.follower.skip_to_end()
        running = ", ".join([*workers, *programs])
        stack.console.print(f"redis {without_password(url)}; running {running}", style="dim")
        stack.stop_workers_at_exit(UP_GRACE_S)
        if FLOWER in programs:
            stack.launch_flower()
        if GATEWAY in programs:
            stack.launch_gateway(settings.http_grace_s + 2)
        for worker in stack.fleet.workers:
            worker.launch()
        was_ready = False

        def announce_ready() -> None:
            nonlocal was_ready
            if not was_ready and all(worker.is_ready for worker in stack.fleet.workers):
                was_ready = True
                stack.console.print("ready", style="bold green")

        stack.keep_running(announce_ready)
    stack.console.print("stopped", style="dim")
