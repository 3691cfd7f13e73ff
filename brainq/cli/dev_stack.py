"""What `brainq dev` does: start everything, watch it, stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.text import Text

from brainq.brain import Brain, load_brain
from brainq.cli.dev_logs import LogFollower
from brainq.cli.flower import flower_command
from brainq.cli.output import stdout
from brainq.cli.reach import without_password
from brainq.cli.style import EFFECT_STYLES, counted, duration
from brainq.devserver.fleet import Fleet
from brainq.devserver.owner import OWNER_FD
from brainq.devserver.resolve import resolve_redis
from brainq.errors import SetupError
from brainq.settings import Settings, load_settings

LOOK_EVERY_S = 0.2
EXAMPLE = "examples.vault"
MOST_RESTARTS = 3
RESTARTS_WITHIN_S = 30.0
FLOWER_PORT = 5555
FLOWER_GRACE_S = 3.0


def run_dev(*, flower: bool, log_level: str) -> None:
    """Run until Ctrl+C or SIGTERM. Raises SetupError when something does not start or keeps dying."""
    settings = load_settings()
    brain = _brain(settings)
    console = stdout()
    started = time.monotonic()
    with _stopped_by_signals(), ExitStack() as stack:
        try:
            _run(settings, brain, console, stack, started, flower=flower, log_level=log_level)
        except KeyboardInterrupt:
            console.print("\nstopping: running work may end", style="dim")
    console.print("stopped; the data stays in " + str(settings.data_dir.absolute()), style="dim")


def _run(
    settings: Settings,
    brain: Brain,
    console: Console,
    stack: ExitStack,
    started: float,
    *,
    flower: bool,
    log_level: str,
) -> None:
    url = stack.enter_context(resolve_redis(settings))
    logs = settings.data_dir.absolute() / "logs"
    environment = {"BRAINQ_REDIS_URL": url, "BRAINQ_APP": settings.app, "PYTHONUNBUFFERED": "1"}
    fleet = Fleet(logs, environment, log_level=log_level)
    if flower:
        stack.enter_context(_flower(logs, environment))
    _print_places(console, settings, brain, url, logs, flower=flower)
    follower = LogFollower(fleet, console)
    stack.callback(fleet.stop)
    for worker in fleet.workers:
        fleet.launch(worker)
    with console.status("starting the workers") if console.is_terminal else nullcontext():
        fleet.wait_ready()
    follower.skip()
    console.print(Text(f"ready in {duration((time.monotonic() - started) * 1000)}", style="bold green"))
    _print_next(console, settings)
    _watch(fleet, follower, console)


def _watch(fleet: Fleet, follower: LogFollower, console: Console) -> None:
    restarts: list[float] = []
    while True:
        time.sleep(LOOK_EVERY_S)
        follower.show()
        for worker in fleet.workers:
            if worker.is_running:
                continue
            code = worker.process.returncode if worker.process else None
            restarts = [at for at in restarts if time.monotonic() - at < RESTARTS_WITHIN_S]
            if len(restarts) >= MOST_RESTARTS:
                raise SetupError(
                    f"the {worker.name} worker keeps dying; the end of {worker.log_path}:\n{fleet.log_tail(worker)}"
                )
            restarts.append(time.monotonic())
            console.print(f"{worker.name} ended ({_how(code)}); starting it again", style="yellow")
            follower.hush(worker)
            fleet.launch(worker)


def _brain(settings: Settings) -> Brain:
    """The brain, loaded here first: four workers that fail on it would say it four times."""
    try:
        return load_brain(settings.app)
    except SetupError as error:
        if os.environ.get("BRAINQ_APP"):
            raise
        hint = "name your brain: `brainq dev -A module:variable`"
        if _is_there(EXAMPLE):
            hint += f", or try the example: `brainq dev -A {EXAMPLE}:brain`"
        raise SetupError(
            f"no brain: neither -A nor BRAINQ_APP is set, and there is no app.py with a `brain`; {hint}"
        ) from error


def _is_there(module: str) -> bool:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _print_places(
    console: Console, settings: Settings, brain: Brain, url: str, logs: Path, *, flower: bool
) -> None:
    own = settings.redis_url is None
    effects: dict[str, int] = {}
    for spec in brain.tools.specs.values():
        effects[spec.effect.value] = effects.get(spec.effect.value, 0) + 1
    tools = Text(", ").join(
        Text(f"{count} {effect}", EFFECT_STYLES[effect]) for effect, count in effects.items()
    )
    rows = {
        "brain": Text(f"{settings.app}, {counted(len(brain.tools.specs), 'tool')}").append_text(
            Text(": ").append_text(tools) if effects else Text("")
        ),
        "redis": Text(without_password(url)).append(
            "  from BRAINQ_REDIS_URL" if not own else "  its own", "dim"
        ),
        "sql": Text(without_password(settings.sql_url.get_secret_value())),
        "logs": Text(f"{logs}/*.log"),
        **({"flower": Text(f"http://127.0.0.1:{FLOWER_PORT}")} if flower else {}),
    }
    for name, value in rows.items():
        console.print(Text(f"  {name:<8}", "bold").append_text(value), soft_wrap=True)


def _print_next(console: Console, settings: Settings) -> None:
    app = "" if settings.app == "app:brain" else f" -A {settings.app}"
    console.print(f'\nIn another terminal, here: brainq{app} submit s1 "Hello!" --follow')
    console.print("Ctrl+C stops everything. What the workers warn of comes below.\n", style="dim")


@contextmanager
def _flower(logs: Path, environment: dict[str, str]) -> Generator[None]:
    """Flower as a child that ends with this process, also when it is killed."""
    theirs, ours = os.pipe()
    with (logs / "flower.log").open("ab") as log:
        process = subprocess.Popen(
            flower_command(FLOWER_PORT),
            env={**os.environ, **environment, OWNER_FD: str(theirs)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(theirs,),
            start_new_session=True,
        )
    os.close(theirs)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(FLOWER_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(ours)


def _how(code: int | None) -> str:
    if code is None:
        return "it never started"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


@contextmanager
def _stopped_by_signals() -> Generator[None]:
    """SIGTERM and SIGHUP stop us as Ctrl+C does, so that nothing is left running."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
