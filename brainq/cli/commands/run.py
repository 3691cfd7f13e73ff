"""`brainq dev`, `up`, `worker` and `serve`: start the processes that run turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated

import typer

from brainq.cli.commands.monitor import LOOPBACK
from brainq.cli.connect import export_redis_url
from brainq.cli.options import Level, LogLevel
from brainq.errors import InvalidInput, SetupError

WORKER_POOLS = ("coordinator", "parallel", "serial", "finalizer")
ALL = "all"
POOLS_VARIABLE = "BRAINQ_POOLS"
GATEWAY_PORT = 8321


def dev(
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart the workers when a Python file that they use changes.")
    ] = False,
    flower: Annotated[bool, typer.Option("--flower", help="Also start Flower on http://127.0.0.1:5555.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="Also make the embedded Redis listen on this port of 127.0.0.1, for producers without brainq.",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http/--no-http", help="Also start the gateway, on BRAINQ_HTTP_PORT (8321).")
    ] = True,
    cells: Annotated[int, typer.Option("--cells", min=1, max=8, help="Run this many cells, to try them out.")] = 1,
    pools: Annotated[
        bool, typer.Option("--pools", help="Run a worker for each pool, as large deployments do, not one for all.")
    ] = False,
    level: LogLevel = Level.WARNING,
) -> None:
    """Run Redis, SQLite, a worker of all pools and the gateway here. Ctrl+C stops them; a second Ctrl+C kills them.

    BRAINQ_REDIS_URL and BRAINQ_SQL_URL are used if they are set. Otherwise an embedded Redis and SQLite keep their
    data in .brainq (BRAINQ_DATA_DIR). Missing requirements are reported before anything starts. A worker that dies is
    restarted.

    \b
    Examples:
      brainq dev
      brainq dev -A shop.agent:brain --reload
      BRAINQ_APP=shop.agent:brain brainq dev --flower
      brainq dev --port 6379          producers without brainq can send to it
      brainq dev --pools              four workers, one for each pool
      brainq dev --cells 2            two Redis, two SQLite, two workers
    """
    if cells > 1:
        if reload or flower or port is not None:
            raise InvalidInput("--cells", "cannot be combined with --reload, --flower or --port; omit those options")
        from brainq.runtime.settings.extensions import load_extension

        load_extension("brainq.cells", "dev")(cells, log_level=level.value, http=http, apart=pools)
        return
    from brainq.cli.dev.stack import run_dev

    run_dev(flower=flower, log_level=level.value, reload=reload, port=port, http=http, apart=pools)


def up(
    pools: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POOL]...",
            help="coordinator, parallel, serial, finalizer; several in one worker, with commas; all; gateway; flower.",
        ),
    ] = None,
    level: LogLevel = Level.INFO,
) -> None:
    """Run pools here and keep them running: all four, or the named ones.

    Each argument has a worker of its own. A worker that dies is restarted, after a wait that grows if it keeps dying.
    Ctrl+C or SIGTERM gives running work a minute to end; a second one kills it. If BRAINQ_REDIS_URL is not set, an
    embedded Redis is started first, with its data in .brainq (BRAINQ_DATA_DIR). Logs go to the terminal.

    Do not use a Procfile runner such as honcho instead: it kills running work 5 s after a stop, and it stops every
    process when one of them ends.

    \b
    Examples:
      brainq up
      brainq up coordinator parallel
      brainq up all gateway           one worker of all pools
      brainq up coordinator parallel serial finalizer gateway
    """
    from brainq.cli.dev.stack import run_up

    run_up(pools or [], log_level=level.value)


def worker(
    pool: Annotated[
        str,
        typer.Argument(
            metavar="POOL", help="coordinator, parallel, serial or finalizer; several separated by commas; or all."
        ),
    ],
    effects: Annotated[
        str,
        typer.Option(
            "--effects",
            help="For the serial pool: only these effects, separated by commas (local_write, network, destructive).",
        ),
    ] = "",
    concurrency: Annotated[
        int | None,
        typer.Option(
            "-c", "--concurrency", min=1, help="Threads, for one pool. For several, set BRAINQ_CONCURRENCY__POOL."
        ),
    ] = None,
    name: Annotated[str, typer.Option("-n", "--name", help="The worker's name; %h stands for the host's name.")] = "",
    level: LogLevel = Level.INFO,
) -> None:
    """Run a worker of one pool, or of several, in the foreground. Ctrl+C lets running work end.

    A worker of several pools is the simplest start. It needs less memory and CPU, and each of its pools keeps its own
    threads, so slow reads never keep turns from starting. To grow, run separate workers for each pool; `brainq scale`
    recommends how many. Both kinds may run side by side.

    This runs `celery -A brainq.workers.POOL worker ...` with brainq's checks. For several pools it runs `celery -A
    brainq.workers.all worker`; BRAINQ_POOLS names the pools, and if it is unset, they are all four.

    \b
    Examples:
      brainq worker all
      brainq worker coordinator,finalizer
      brainq worker coordinator
      brainq worker parallel -c 64
      BRAINQ_CONCURRENCY__PARALLEL=64 brainq worker all
      brainq worker serial --effects network -n net@%h
    """
    pools = named_pools(pool)
    command = worker_command(pools, concurrency=concurrency, name=name, level=level)
    os.environ[POOLS_VARIABLE] = ",".join(pools)
    if effects:
        os.environ["BRAINQ_EFFECTS"] = _checked_effects(pools, effects)
    from brainq.cli.dev.startup import ready_to_start
    from brainq.runtime.settings.deployment import load_settings

    ready_to_start(load_settings(), redis_url=export_redis_url())
    # -l sets Celery's log level; the variable sets the level of brainq's own lines
    os.environ.setdefault("BRAINQ_LOG_LEVEL", level.value)
    os.execv(sys.executable, command)


def named_pools(text: str, others: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the pools of `all`, or of names with commas between them.

    Raises InvalidInput for another name, with the known ones. `others` are known, too, where they stand alone.
    """
    named = [name.strip() for name in text.split(",")]
    if unknown := [name for name in named if name not in (*WORKER_POOLS, ALL)]:
        known = f"{', '.join((*WORKER_POOLS, *others))} or {ALL}"
        raise InvalidInput("POOL", f"{unknown[0]!r} is not one of {known}; join several with commas")
    return tuple(pool for pool in WORKER_POOLS if pool in named or ALL in named)


def worker_command(
    pools: Sequence[str], *, concurrency: int | None = None, name: str = "", level: str = "info"
) -> list[str]:
    """Return the celery command of a worker of these pools. Raises InvalidInput for `concurrency` of several."""
    if len(pools) > 1 and concurrency is not None:
        variables = ", ".join(f"BRAINQ_CONCURRENCY__{pool.upper()}" for pool in pools)
        raise InvalidInput("--concurrency", f"each of these pools has threads of its own; set {variables}")
    named = ALL if len(pools) == len(WORKER_POOLS) else "-".join(pools)
    return [
        sys.executable,
        *("-m", "brainq.workers.tasks.celery_command"),
        *("-A", f"brainq.workers.{pools[0] if len(pools) == 1 else ALL}", "worker"),
        *("--without-gossip", "--without-mingle"),
        *("-n", name or f"{named}@%h", "-l", level.upper()),
        *(("-c", str(concurrency)) if concurrency else ()),
    ]


def _checked_effects(pools: Sequence[str], effects: str) -> str:
    if "serial" not in pools:
        raise InvalidInput("--effects", f"applies only to the serial pool, not to {', '.join(pools)}; omit it")
    known = ("local_write", "network", "destructive")
    unknown = [word for word in effects.split(",") if word.strip().lower() not in known]
    if unknown:
        raise InvalidInput("--effects", f"{', '.join(unknown) or 'nothing'} is not one of {', '.join(known)}")
    return effects


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="The address to listen on (BRAINQ_HTTP_HOST). If it is not loopback, callers need tokens, or you set "
            "BRAINQ_HTTP_AUTH.",
            show_default=LOOPBACK,
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="The port to listen on (BRAINQ_HTTP_PORT).", show_default=str(GATEWAY_PORT)
        ),
    ] = None,
    level: LogLevel = Level.INFO,
) -> None:
    """Run the gateway: turns over HTTP, for any language.

    On 127.0.0.1, callers need no authentication until `brainq token create` has created a token; from then on every
    request needs one. On any other --host, every request needs a token from the start. To authenticate your own users,
    set BRAINQ_HTTP_AUTH=module:function. After SIGTERM, clients with open streams reconnect to this or another gateway
    and continue where they were. GET /v1/openapi.json describes all routes.

    \b
    Examples:
      brainq serve
      brainq serve -A shop.agent:brain --port 8080
      brainq token create web --sessions '*' --verb read --verb submit && brainq serve --host 0.0.0.0
    \b
    Then, from another machine or terminal:
      curl -d '{"session_id": "s1", "user_message": "count apples"}' \\
           -H 'Content-Type: application/json' -H 'Prefer: wait=30' http://127.0.0.1:8321/v1/turns
      curl -N http://127.0.0.1:8321/v1/turns/TURN/events
    """
    require_http()
    from brainq.app.devserver.ports import require_free_port
    from brainq.cli.dev.startup import ready_to_start
    from brainq.runtime.settings.deployment import load_settings

    settings = load_settings()
    os.environ["BRAINQ_HTTP_HOST"] = host or settings.http_host
    os.environ["BRAINQ_HTTP_PORT"] = str(port or settings.http_port)
    os.environ.setdefault("BRAINQ_LOG_LEVEL", level.value)
    require_free_port(host or settings.http_host, port or settings.http_port, "the gateway", "--port")
    ready_to_start(load_settings(), redis_url=export_redis_url())
    os.execv(sys.executable, gateway_command())


def gateway_command() -> list[str]:
    """Return the command of the gateway. The gateway reads its settings from the environment."""
    return [sys.executable, "-m", "brainq.workers.gateway"]


def require_http() -> None:
    """Raise SetupError if the extra `http` is not installed."""
    if not has_http():
        raise SetupError(
            "the gateway needs FastAPI and uvicorn, which are not installed; run pip install 'brainq[http]'"
        )


def has_http() -> bool:
    return all(find_spec(module) for module in ("fastapi", "uvicorn"))
