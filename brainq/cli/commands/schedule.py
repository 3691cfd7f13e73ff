"""`brainq schedule`: turns that begin at a time, once or again and again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import App, AsJson

app = command_group("Turns that begin at a time, once or again and again.")
Name = Annotated[str, typer.Argument(help="The schedule's name.")]


@app.callback()
def schedule() -> None:
    """Turns that begin at a time, once or again and again."""


@subcommand(app, "add")
def add(
    name: Annotated[str, typer.Argument(help="Its name; the same name again sets it anew.")],
    session: Annotated[str, typer.Argument(help="{date} and {time} in it are those of each run.")],
    message: Annotated[str, typer.Argument(help="What each turn is asked.")],
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="FIELDS", help="Five fields: '*/5 9-17 * * mon-fri'.")
    ] = None,
    every: Annotated[str | None, typer.Option("--every", metavar="SPAN", help="30m, 12h, 1d.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Once: 2031-01-05T09:00+01:00.")] = None,
    in_: Annotated[str | None, typer.Option("--in", metavar="SPAN", help="Once: 90m, 12h, 30d.")] = None,
    zone: Annotated[str, typer.Option("--zone", help="By which --cron goes: Europe/Berlin.")] = "UTC",
    on_running: Annotated[
        str, typer.Option("--on-running", help="Where the last one still runs: skip or queue.")
    ] = "skip",
    missed: Annotated[
        str, typer.Option("--missed", help="Runs that did not begin in time: once (for all) or skip.")
    ] = "once",
    model: Annotated[str | None, typer.Option("--model", help="provider:model, over the brain's.")] = None,
    brain: Annotated[str | None, typer.Option("--brain", help="Which of several brains.")] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Have a turn begin at a time.

    \b
    Examples:
      brainq schedule add daily 'report-{date}' "Write the report" --cron '0 7 * * mon-fri' --zone Europe/Berlin
      brainq schedule add poll s1 "Look for news" --every 30m
      brainq schedule add once s1 "Remind me" --in 2h
    """
    from brainq.cli.connect import open_client
    from brainq.cli.options import parse_span_s
    from brainq.cli.output import note, print_json
    from brainq.errors import InvalidInput

    chosen: dict[str, Any] = {"zone": zone, "on_running": on_running, "missed": missed}
    if sum(choice is not None for choice in (cron, every, at, in_)) != 1:
        raise InvalidInput("--cron", "give one of --cron, --every, --at and --in")
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
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        note(f"schedule {made.name}: {_first(made.next_at)}", style="green")


@subcommand(app, "list")
def list_schedules(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 1000,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List schedules by name, each with its next run."""
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import note, print_json, stdout
    from brainq.cli.pages.layout import PageTable, fact, key, words

    with open_brainless_client() as client:
        rows = client.schedules(limit)
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
    elif not rows:
        note("no schedules")
    else:
        table = PageTable(key("name"), fact("when", 4), fact("next", 5), fact("last turn", 3), words("note", 1))
        for row in rows:
            following = "paused" if row.paused else _first(row.next_at)
            table.add(row.name, f"{row.when} {row.zone}", following, row.last_turn_id, row.note)
        stdout().print(table)


@subcommand(app, "show")
def show(name: Name, as_json: AsJson = False, app: App = "") -> None:
    """Show one schedule whole."""
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_json, stdout

    with open_brainless_client() as client:
        made = client.find_schedule(name)
    if as_json:
        print_json(made.model_dump(mode="json"))
        return
    for field, value in made.model_dump(mode="json").items():
        stdout().print(f"{field:13} {'' if value is None else value}", markup=False, highlight=False)


@subcommand(app, "pause")
def pause(name: Name, as_json: AsJson = False, app: App = "") -> None:
    """Begin no turn of it until it is resumed."""
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import note, print_json

    with open_brainless_client() as client:
        made = client.pause_schedule(name)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        note(f"schedule {name} is paused", style="green")


@subcommand(app, "resume")
def resume(name: Name, as_json: AsJson = False, app: App = "") -> None:
    """Go on with its next run; what was due meanwhile is left out."""
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import note, print_json

    with open_brainless_client() as client:
        made = client.resume_schedule(name)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        note(f"schedule {name}: {_first(made.next_at)}", style="green")


@subcommand(app, "remove")
def remove(name: Name, as_json: AsJson = False, app: App = "") -> None:
    """Forget a schedule. Turns that it has begun go on."""
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.exit_codes import ExitCode
    from brainq.cli.output import note, print_json

    with open_brainless_client() as client:
        was_there = client.remove_schedule(name)
    if as_json:
        print_json({"name": name, "removed": was_there})
    else:
        outcome = f"schedule {name} is removed" if was_there else f"no schedule {name}"
        note(outcome, style="green" if was_there else "yellow")
    if not was_there:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _instant(text: str) -> datetime:
    from brainq.errors import InvalidInput

    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput("--at", f"{text!r} is not a time; write 2031-01-05T09:00+01:00") from None


def _first(at: datetime | None) -> str:
    return "over" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
