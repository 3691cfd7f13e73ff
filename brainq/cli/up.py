"""`brainq up`: pools on one machine, kept running."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, Level, LogLevel


def up(
    pools: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POOL]...", help="coordinator, parallel, serial, finalizer, gateway, flower."
        ),
    ] = None,
    level: LogLevel = Level.INFO,
    app: App = "",
) -> None:
    """Run pools here and keep them running: all four, or those named.

    A worker that dies is started again, after a wait that grows while it keeps dying. Ctrl+C or SIGTERM gives
    running work a minute to end; a second one stops it at once. Without BRAINQ_REDIS_URL a Redis of its own is
    started first, with its data in .brainq (BRAINQ_DATA_DIR). Logs come to the terminal.

    The repository's Procfile says the same for honcho and its like.

    \b
    Examples:
      brainq up
      brainq up coordinator parallel
      brainq up coordinator parallel serial finalizer gateway
    """
    from brainq.cli.up_stack import run_up

    run_up(pools or [], log_level=level.value)
