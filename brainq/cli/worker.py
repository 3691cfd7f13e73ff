"""`brainq worker`: one pool's worker, as the stock celery command runs it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from brainq.cli.options import App, Level, LogLevel

POOLS = ("coordinator", "parallel", "serial", "finalizer")


def worker(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="coordinator, parallel, serial or finalizer.")],
    effects: Annotated[
        str,
        typer.Option(
            "--effects", help="serial only: local_write, network, destructive; several with commas."
        ),
    ] = "",
    concurrency: Annotated[int | None, typer.Option("-c", "--concurrency", min=1, help="Threads.")] = None,
    name: Annotated[str, typer.Option("-n", "--name", help="The worker's name; %h is the host.")] = "",
    level: LogLevel = Level.INFO,
    app: App = "",
) -> None:
    """Run a worker of one pool in the foreground.

    This process becomes what `celery -A brainq.workers.POOL worker ...` is; Ctrl+C lets running work end.

    \b
    Examples:
      brainq worker coordinator
      brainq worker parallel -c 64
      brainq worker serial --effects network -n net@%h
    """
    command = worker_command(pool, concurrency=concurrency, name=name, level=level)
    if effects:
        os.environ["BRAINQ_EFFECTS"] = _checked_effects(pool, effects)
    from brainq.cli.reach import share_redis
    from brainq.cli.starting import ready_to_start
    from brainq.settings import load_settings

    ready_to_start(load_settings(), redis_url=share_redis())
    os.environ.setdefault("BRAINQ_LOG_LEVEL", level.value)  # -l is Celery's; this is for brainq's own lines
    os.execv(sys.executable, command)


def worker_command(
    pool: str, *, concurrency: int | None = None, name: str = "", level: str = "info"
) -> list[str]:
    """The celery command of a pool's worker. Raises InvalidInput for an unknown pool."""
    if pool not in POOLS:
        from brainq.errors import InvalidInput

        raise InvalidInput("POOL", f"{pool!r} is none of {', '.join(POOLS)}")
    return [
        sys.executable,
        *("-m", "brainq.tasks.start", "-A", f"brainq.workers.{pool}", "worker"),
        *("--without-gossip", "--without-mingle"),
        *("-n", name or f"{pool}@%h", "-l", level.upper()),
        *(("-c", str(concurrency)) if concurrency else ()),
    ]


def _checked_effects(pool: str, effects: str) -> str:
    from brainq.errors import InvalidInput

    if pool != "serial":
        raise InvalidInput("--effects", f"only the serial pool is split by effect, not {pool!r}")
    known = ("local_write", "network", "destructive")
    unknown = [word for word in effects.split(",") if word.strip().lower() not in known]
    if unknown:
        raise InvalidInput("--effects", f"{', '.join(unknown) or 'nothing'} is none of {', '.join(known)}")
    return effects
