"""Options shared by several commands, and parsers of values as people type them: text, JSON, files, time spans."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from brainq.cli.connect import newest_turns
from brainq.errors import ExitCode, InvalidInput
from brainq.runtime.settings.environment import TYPED_OPTIONS

if TYPE_CHECKING:
    from brainq.contracts.file import File

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Show at most this many.")]
UNIT_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
NO_TERMINAL = "there is no terminal to ask for confirmation; add --yes"
_SPAN = re.compile(r"\s*(\d{1,6}(?:\.\d{1,3})?)\s*([mhdw])\s*", re.ASCII)


def use_app(value: str) -> str:
    """Set BRAINQ_APP to the value of `-A`, for this process and every process that it starts.

    Raises InvalidInput if the value is not `module:variable`.
    """
    if value:
        module, colon, variable = value.partition(":")
        if not all(name.isidentifier() for name in (*module.split("."), variable)):
            meant = f"-A {module}:brain" if not colon and module.isidentifier() else "-A shop.agent:brain"
            raise InvalidInput("-A", f"{value!r} is not module:variable; write it like {meant}")
        os.environ["BRAINQ_APP"] = value
        TYPED_OPTIONS["BRAINQ_APP"] = f"-A {value}"
    return value


App = Annotated[
    str, typer.Option("-A", "--app", metavar="MODULE:BRAIN", callback=use_app, help="The brain; sets BRAINQ_APP.")
]


def takes_app(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with `-A` as an additional option."""

    @functools.wraps(command)
    def run(*, app: str = "", **options: Any) -> None:  # The callback of App has already used `app`.
        command(**options)

    signature = inspect.signature(command, eval_str=True)
    of_app = inspect.Parameter("app", inspect.Parameter.KEYWORD_ONLY, default="", annotation=App)
    setattr(run, "__signature__", signature.replace(parameters=[*signature.parameters.values(), of_app]))  # noqa: B010
    return run


class Level(StrEnum):
    """The log level of a worker, for the lines of brainq and Celery."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevel = Annotated[
    Level, typer.Option("-l", "--log-level", case_sensitive=False, help="The log level of the workers.")
]


TurnArgument = Annotated[
    str,
    typer.Argument(
        metavar="TURN", help="The id of a turn, the beginning of an id, or a request key.", autocompletion=newest_turns
    ),
]


def require_consent(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless `yes`. Raises InvalidInput if there is no terminal, and typer.Exit for a no."""
    if not yes and not sys.stdin.isatty():
        raise InvalidInput("--yes", NO_TERMINAL)
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(ExitCode.REFUSED)


def read_text(value: str, field: str) -> str:
    """Return `value`, or the content of the file that `@FILE` names, or stdin for `@-`. Raises InvalidInput."""
    if value == "@-":
        return sys.stdin.read()
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            field, f"{value[1:]!r} cannot be read ({type(error).__name__}); give the name of a text file"
        ) from None


def read_json(value: str, field: str) -> Any:
    """Parse the JSON that `read_text` returns. Raises InvalidInput."""
    try:
        return json.loads(read_text(value, field))
    except ValueError as error:
        raise InvalidInput(field, f'is not JSON ({error}); write a value such as \'{{"path": "a.md"}}\'') from None


def read_json_object(value: str, field: str) -> dict[str, Any]:
    """Parse the JSON object that `read_text` returns. Raises InvalidInput."""
    parsed: object = read_json(value, field)
    if not isinstance(parsed, dict):
        raise InvalidInput(field, 'is not a JSON object; write it like \'{"path": "a.md"}\'')
    return cast("dict[str, Any]", parsed)


def read_files(paths: list[str]) -> list[File]:
    """Read the files that `--attach` names. Raises InvalidInput."""
    from brainq.contracts.file import File

    try:
        return [File.of(path) for path in paths]
    except InvalidInput as refused:
        raise InvalidInput("--attach", refused.problem) from None


def parse_span_s(option: str, value: str) -> float:
    """Return the seconds of a span such as `90m` or `30d`. Raises InvalidInput, naming the option."""
    match = _SPAN.fullmatch(value)
    if match is None:
        raise InvalidInput(
            option,
            f"{value!r} is not a span of time; write a number and a unit (m, h, d or w), such as 90m, 12h, 30d or 8w",
        )
    return float(match[1]) * UNIT_SECONDS[match[2]]


def parse_when(option: str, value: str) -> datetime:
    """Return the instant that `value` names: a span before now, or a time in ISO format. A time without a time zone is
    in this machine's zone. Raises InvalidInput, naming the option.
    """
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        pass
    if _SPAN.fullmatch(value) is None:
        raise InvalidInput(
            option, f"{value!r} is not a time; write a span such as 90m or 12h, or a time such as 2031-01-05T09:30:00Z"
        )
    return datetime.now(UTC) - timedelta(seconds=parse_span_s(option, value))
