"""`brainq webhook`: deliveries of endings and approvals to webhooks."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import App, AsJson

app = command_group("What webhooks are sent (BRAINQ_WEBHOOKS).")


@app.callback()
def webhook() -> None:
    """What webhooks are sent."""


@subcommand(app, "list")
def list_deliveries(
    state: Annotated[str, typer.Option("--state", help="pending, done, dead (given up), or all.")] = "all",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 50,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List deliveries, the newest first.

    \b
    Examples:
      brainq webhook list
      brainq webhook list --state dead --json
    """
    from dataclasses import asdict

    from brainq.cli.connect import open_operator
    from brainq.cli.output import note, print_json, stdout
    from brainq.cli.pages.fleet import deliveries_table

    with open_operator() as operator:
        rows = operator.deliveries(None if state == "all" else state, limit)
    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        stdout().print(deliveries_table(rows))
    else:
        note("no deliveries" + ("" if state == "all" else f" in state {state!r}"))


@subcommand(app, "retry")
def retry(
    delivery: Annotated[
        str, typer.Argument(metavar="ID", help="As `brainq webhook list` shows it, or `all` that are dead.")
    ],
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Send dead deliveries again, as if they were new. The finalizer pool sends them, within a second or two.

    \b
    Examples:
      brainq webhook retry 17
      brainq webhook retry all
    """
    from brainq.cli.connect import open_operator
    from brainq.cli.exit_codes import ExitCode
    from brainq.cli.output import counted, note, print_json
    from brainq.errors import InvalidInput

    if delivery != "all" and not (delivery.isascii() and delivery.isdigit() and len(delivery) < 19):
        raise InvalidInput(
            "ID", f"{delivery[:60]!r} is neither a delivery's number nor `all`; see `brainq webhook list`"
        )
    with open_operator() as operator:
        revived = operator.send_again(None if delivery == "all" else int(delivery))
    if as_json:
        print_json({"retried": revived})
    elif revived:
        note(f"{counted(revived, 'delivery', 'deliveries')} will be sent again", style="green")
    else:
        note("nothing is dead" if delivery == "all" else f"no delivery {delivery} is dead", style="yellow")
    if not revived and delivery != "all":
        raise typer.Exit(ExitCode.NOT_FOUND)
