"""Options that several commands share."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def use_app(value: str) -> str:
    """Make `-A module:brain` what every part of this process, and every process it starts, uses."""
    if value:
        os.environ["BRAINQ_APP"] = value
    return value


App = Annotated[
    str,
    typer.Option("-A", "--app", metavar="MODULE:BRAIN", callback=use_app, help="The brain; sets BRAINQ_APP."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TurnArgument = Annotated[
    str, typer.Argument(metavar="TURN", help="A turn id, the beginning of one, or a request key.")
]
