"""`brainq dev`: everything on this machine, in one command."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, Level, LogLevel


def dev(
    app: App = "",
    reload: Annotated[
        bool, typer.Option("--reload", help="Start the workers again when a Python file here changes.")
    ] = False,
    flower: Annotated[
        bool, typer.Option("--flower", help="Start Flower too, on http://127.0.0.1:5555.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="Let its own Redis listen on this port of 127.0.0.1, too, for producers without brainq.",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http/--no-http", help="Start the gateway too, on BRAINQ_HTTP_PORT (8321).")
    ] = True,
    level: LogLevel = Level.WARNING,
) -> None:
    """Run Redis, SQLite, all four pools and the gateway here. Ctrl+C stops them, a second one at once.

    BRAINQ_REDIS_URL and BRAINQ_SQL_URL are used if they are set; else a Redis of its own and SQLite keep their
    data in .brainq (BRAINQ_DATA_DIR). What is missing is said before anything starts. A worker that dies is
    started again.

    \b
    Examples:
      brainq dev
      brainq dev -A shop.agent:brain --reload
      BRAINQ_APP=shop.agent:brain brainq dev --flower
      brainq dev --port 6379          docs/producers.md shows what can send then
    """
    from brainq.cli.dev_stack import run_dev

    run_dev(flower=flower, log_level=level.value, reload=reload, port=port, http=http)
