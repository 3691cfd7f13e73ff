"""Options that several commands share."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from brainq.environment import GIVEN_BY
from brainq.errors import InvalidInput

COMPLETED = 50  # turns the shell is offered


def use_app(value: str) -> str:
    """Make `-A module:brain` what every part of this process, and every process it starts, uses.

    Raises InvalidInput for what names no variable of a module.
    """
    if value:
        module, colon, variable = value.partition(":")
        if not all(name.isidentifier() for name in (*module.split("."), variable)):
            meant = f"-A {module}:brain" if not colon and module.isidentifier() else "-A shop.agent:brain"
            raise InvalidInput("-A", f"{value!r} is not module:variable; write it as in {meant}")
        os.environ["BRAINQ_APP"] = value
        GIVEN_BY["BRAINQ_APP"] = f"-A {value}"
    return value


App = Annotated[
    str,
    typer.Option("-A", "--app", metavar="MODULE:BRAIN", callback=use_app, help="The brain; sets BRAINQ_APP."),
]


class Level(StrEnum):
    """How much a worker logs, brainq's lines and Celery's."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevel = Annotated[
    Level, typer.Option("-l", "--log-level", case_sensitive=False, help="What the workers log.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def newest_turns(incomplete: str) -> list[str]:
    """For the shell's completion: ids of the newest turns that begin so. Nothing where there is no database."""
    try:
        from brainq.settings import load_settings
        from brainq.store.store import Store

        url = load_settings().sql_url.get_secret_value()
        path = url.removeprefix("sqlite:///")
        if path != url and not os.path.exists(path):
            return []
        with Store.open(url) as store:
            rows = store.turns.list(None, None, COMPLETED)
    except Exception:  # completion shows no errors
        return []
    return [row.turn_id for row in rows if row.turn_id.startswith(incomplete)]


TurnArgument = Annotated[
    str,
    typer.Argument(
        metavar="TURN",
        help="A turn id, the beginning of one, or a request key.",
        autocompletion=newest_turns,
    ),
]
