"""`brainq schedule`: start turns at a time, once or repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brainq.cli.connect import open_brainless_client, open_client
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Limit, parse_span_s
from brainq.cli.output import print_json, print_outcome, print_rows, stdout
from brainq.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.schedule import Schedule

app = command_group("Start turns at set times, once or repeatedly.")
Name = Annotated[str, typer.Argument(help="The schedule's name.")]


@subcommand(app, "add")
def add(
    name: Annotated[str, typer.Argument(help="The schedule's name. An existing schedule with this name is replaced.")],
    session: Annotated[
        str, typer.Argument(help="The session of the turns; {date} and {time} are replaced at each run.")
    ],
    message: Annotated[str, typer.Argument(help="The user message of each turn.")],
    cron: Annotated[
        str | None,
        typer.Option(
            "--cron", metavar="FIELDS", help="A cron expression with five fields, such as '*/5 9-17 * * mon-fri'."
        ),
    ] = None,
    every: Annotated[str | None, typer.Option("--every", metavar="SPAN", help="30m, 12h, 1d.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Once: 2031-01-05T09:00+01:00.")] = None,
    in_: Annotated[str | None, typer.Option("--in", metavar="SPAN", help="Once: 90m, 12h, 30d.")] = None,
    zone: Annotated[str, typer.Option("--zone", help="The time zone of --cron, such as Europe/Berlin.")] = "UTC",
    on_running: Annotated[
        str, typer.Option("--on-running", help="What to do if the previous turn is still running: skip or queue.")
    ] = "skip",
    missed: Annotated[
        str, typer.Option("--missed", help="What to do about missed runs: once (one turn for all of them) or skip.")
    ] = "once",
    model: Annotated[
        str | None, typer.Option("--model", help="A model other than the brain's, as provider:model.")
    ] = None,
    brain: Annotated[str | None, typer.Option("--brain", help="The brain that runs the turns.")] = None,
    as_json: AsJson = False,
) -> None:
    """Schedule a turn.

    \b
    Examples:
      brainq schedule add daily 'report-{date}' "Write the report" --cron '0 7 * * mon-fri' --zone Europe/Berlin
      brainq schedule add poll s1 "Look for news" --every 30m
      brainq schedule add once s1 "Remind me" --in 2h
    """
    chosen: dict[str, Any] = {"zone": zone, "on_running": on_running, "missed": missed}
    if sum(choice is not None for choice in (cron, every, at, in_)) != 1:
        raise InvalidInput("--cron", "give exactly one of --cron, --every, --at and --in")
    when = cron if every is None else parse_span_s("--every", every)
    if at is not None:
        chosen["at"] = _instant(at)
    if in_ is not None:
        chosen["in_s"] = parse_span_s("--in", in_)
    with open_client() as client:
        try:
            made = client.schedule(name, session, message, when=when, model=model, brain=brain, **chosen)
        except InvalidInput as refused:
            options = {"when": "--every" if cron is None else "--cron", "on_running": "--on-running"}
            options |= {"at": "--at", "in_s": "--in", "zone": "--zone", "missed": "--missed"}
            raise InvalidInput(options.get(refused.field, refused.field), refused.problem) from None
    print_outcome(made, f"schedule {made.name}: {_first(made.next_at)}", as_json=as_json)


@subcommand(app, "list")
def list_schedules(limit: Limit = 1000, as_json: AsJson = False) -> None:
    """List schedules by name, each with its next run."""
    with open_brainless_client() as client:
        rows = client.schedules(limit)
    print_rows(rows, _schedules_table, "no schedules", as_json=as_json)


def _schedules_table(rows: Sequence[Schedule]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("name"): row.name,
            fact("when", 4): f"{row.when} {row.zone}",
            fact("next", 5): "paused" if row.paused else _first(row.next_at),
            fact("last turn", 3): row.last_turn_id,
            words("note", 1): row.note,
        }
        for row in rows
    )


@subcommand(app, "show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show all fields of a schedule."""
    with open_brainless_client() as client:
        made = client.find_schedule(name)
    if as_json:
        print_json(made)
        return
    for field, value in made.model_dump(mode="json").items():
        stdout().print(f"{field:13} {'' if value is None else value}", markup=False, highlight=False)


@subcommand(app, "pause")
def pause(name: Name, as_json: AsJson = False) -> None:
    """Pause a schedule: it starts no turn until it is resumed."""
    with open_brainless_client() as client:
        made = client.pause_schedule(name)
    print_outcome(made, f"schedule {name} is paused", as_json=as_json)


@subcommand(app, "resume")
def resume(name: Name, as_json: AsJson = False) -> None:
    """Resume a schedule. It starts with its next run; runs that were missed during the pause are skipped."""
    with open_brainless_client() as client:
        made = client.resume_schedule(name)
    print_outcome(made, f"schedule {name}: {_first(made.next_at)}", as_json=as_json)


@subcommand(app, "remove")
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a schedule. Turns that it has already started continue."""
    with open_brainless_client() as client:
        was_there = client.remove_schedule(name)
    outcome = f"schedule {name} is removed" if was_there else f"there is no schedule {name}"
    print_outcome(
        {"name": name, "removed": was_there}, outcome, ok=was_there, exit_code=ExitCode.NOT_FOUND, as_json=as_json
    )


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput("--at", f"{text!r} is not a time; write it like 2031-01-05T09:00+01:00") from None


def _first(at: datetime | None) -> str:
    return "finished" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
