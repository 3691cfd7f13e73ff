"""Lay out `--help`: commands and options in groups, complete summaries, and readable metavars.

The output is plain text from typer's own formatter, so it needs no slow import and can be piped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from brainq.cli.options import takes_app

READY_MADE = {
    "limit": "N",
    "port": "PORT",
    "address": "ADDRESS",
    "concurrency": "THREADS",
    "after": "NUMBER",
    "cwd": "DIR",
    "by": "NAME",
    "zone": "ZONE",
    "at_cap": "WORD",
    "because": "WHY",
    "where": "WORDS",
    "on_running": "WORD",
    "on_expiry": "WORD",
    "missed": "WORD",
}
"""Metavars of options by parameter name. Other options use the last word of their name: `--request-key KEY`."""
_RANGE = re.compile(r"(?:(\d+)<=x<=(\d+)|x>=(\d+))(?=\])")
_DEFAULT = re.compile(r"(?<=\[default: )\((\w[^()]*)\)")
HELP_OPTIONS = frozenset({"help", "version", "install_completion", "show_completion"})


class HelpCommand(TyperCommand):
    """A command whose options are listed in the groups that `rich_help_panel` names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_values(self.params)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_parameters(self.get_params(ctx), ctx, formatter)


class HelpGroup(TyperGroup):
    """A group whose commands are listed by `rich_help_panel`, each with its complete summary."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name_values(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        write_parameters(self.get_params(ctx), ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = command.rich_help_panel or "Commands"
                groups.setdefault(panel, []).append((name, summary_of(command)))
        width = max((len(name) for rows in groups.values() for name, _ in rows), default=0)
        for panel, rows in groups.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])


def summary_of(command: Any) -> str:
    """Return the first sentence of a command's help."""
    first_paragraph = " ".join((command.short_help or command.help or "").strip().partition("\n\n")[0].split())
    return first_paragraph.partition(". ")[0].removesuffix(".")


def name_values(parameters: Iterable[Any]) -> None:
    """Set readable metavars: `SESSION`, and `--request-key KEY` instead of `--request-key <str>`."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" and parameter.metavar is None:
            parameter.metavar = parameter.name.upper()
        is_flag = getattr(parameter, "is_flag", False)
        if parameter.param_type_name == "option" and not is_flag and parameter.metavar is None:
            last_word = parameter.name.rpartition("_")[2].removesuffix("s").upper()
            is_span = parameter.name.endswith("_s") or parameter.name == "wait"
            parameter.metavar = (
                READY_MADE.get(parameter.name) or _choices(parameter) or ("SECONDS" if is_span else last_word)
            )


def write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """Write arguments first, then each group of options. `--help` comes last among the options without a group."""
    arguments: list[tuple[str, str]] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    last: list[tuple[str, str]] = []
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        record = (record[0], _DEFAULT.sub(r"\1", _RANGE.sub(_range, record[1])))
        if parameter.param_type_name == "argument":
            arguments.append((_plain(parameter, record[0]), record[1].replace("  [required]", "")))
        elif parameter.name in HELP_OPTIONS:
            last.append(record)
        else:
            groups.setdefault(getattr(parameter, "rich_help_panel", None) or "Options", []).append(record)
    groups.setdefault("Options", []).extend(last)
    for title, rows in ({"Arguments": arguments} | groups).items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def command_group(help_text: str) -> typer.Typer:
    """Return an empty group of commands, such as `brainq db`. Add commands to it with `subcommand`."""
    group = typer.Typer(help=help_text, rich_markup_mode=None, no_args_is_help=True, cls=HelpGroup)
    group.callback(help=help_text)(
        lambda: None
    )  # Without a callback, typer would turn a group with one command into that command.
    return group


def subcommand(app: typer.Typer, name: str) -> Callable[[Any], Any]:
    """Return a decorator that adds a function to `app` as a command."""
    return lambda command: app.command(name, cls=HelpCommand)(takes_app(command))


def _plain(parameter: Any, text: str) -> str:
    """Return an argument's name without its type: `SESSION` instead of `SESSION <str>`."""
    name, kind, _ = text.partition(" <")
    return name if kind or parameter.metavar else text


def _range(match: re.Match[str]) -> str:
    least, highest, at_least = match.groups()
    return f"{at_least} or more" if at_least else f"{least} to {int(highest):,}"


def _choices(parameter: Any) -> str:
    """Return `debug|info|...` for a parameter with choices, otherwise an empty text."""
    known: Any = getattr(parameter, "type_descriptor", None) or parameter.type
    choices: Iterable[Any] = getattr(known, "choices", None) or ()
    return "|".join(str(getattr(choice, "value", choice)) for choice in choices)
