"""`brainq up`: the processes of a Procfile, run by honcho."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brainq.cli.options import App


def up(
    processes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROCESS]...", help="Only these; all of them if none is named."),
    ] = None,
    procfile: Annotated[
        Path, typer.Option("-f", "--procfile", help="The file that names the processes.")
    ] = Path("Procfile"),
    app: App = "",
) -> None:
    """Run the Procfile: each pool as the stock celery command it names.

    Without BRAINQ_REDIS_URL a Redis of its own is started first, with its data in .brainq (BRAINQ_DATA_DIR).
    When one process ends, honcho stops the others.

    \b
    Examples:
      brainq up
      brainq up coordinator parallel
      brainq up -f deploy/Procfile
    """
    from brainq.cli.up_stack import run_up

    raise typer.Exit(run_up(procfile, processes or []))
