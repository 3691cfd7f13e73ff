"""`brainq webhook`: list deliveries to webhooks, and send dead ones again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_operator
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Limit
from brainq.cli.output import clean, counted, print_outcome, print_rows, status_text
from brainq.errors import ExitCode

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.webhook import DeliveryRow

app = command_group("List and retry deliveries to webhooks (BRAINQ_WEBHOOKS).")


@subcommand(app, "list")
def list_deliveries(
    state: Annotated[str, typer.Option("--state", help="pending, done, dead (given up), or all.")] = "all",
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first.

    \b
    Examples:
      brainq webhook list
      brainq webhook list --state dead --json
    """
    with open_operator() as operator:
        rows = operator.deliveries(None if state == "all" else state, limit)
    none = "no deliveries" + ("" if state == "all" else f" in state {state!r}")
    print_rows(rows, _deliveries_table, none, as_json=as_json)


def _deliveries_table(rows: Sequence[DeliveryRow]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("id"): str(row.row),
            fact("state", 6): status_text(row.state),
            fact("event", 5): row.event,
            fact("turn", 4): row.turn_id,
            fact("tries", 2, right=True): str(row.tries),
            words("to", 1): clean(row.url, lines=False),
            words("error", 3): clean(row.error or "", lines=False),
        }
        for row in rows
    )


@subcommand(app, "retry")
def retry(
    delivery: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The id of a dead delivery from `brainq webhook list`, or `all` for every one."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Send dead deliveries again. The finalizer pool sends them within a second or two.

    \b
    Examples:
      brainq webhook retry 17
      brainq webhook retry all
    """
    with open_operator() as operator:
        revived = operator.send_again(None if delivery == "all" else delivery)
    outcome = "no delivery is dead" if delivery == "all" else f"delivery {delivery} does not exist or is not dead"
    if revived:
        outcome = f"{counted(revived, 'delivery', 'deliveries')} will be sent again"
    code = ExitCode.OK if delivery == "all" else ExitCode.NOT_FOUND
    print_outcome({"retried": revived}, outcome, ok=bool(revived), exit_code=code, as_json=as_json)
