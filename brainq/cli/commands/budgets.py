"""`brainq budgets`: list, set and raise the caps on the cost of model calls per hour, day and month."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.commands.spend import dollars
from brainq.cli.connect import open_brainless_client
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson
from brainq.cli.output import clean, note, print_outcome, print_rows

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.budgets import BudgetState

app = command_group("Caps on the cost of model calls.")
Scope = Annotated[
    str,
    typer.Argument(
        help='all; tenant, user or brain (a budget for each of them); or a single one, such as "tenant acme:" or '
        '"brain support".'
    ),
]
Period = Annotated[str, typer.Option("--per", metavar="WINDOW", help="hour, day or month.")]


@subcommand(app, "list")
def list_budgets(as_json: AsJson = False) -> None:
    """List budgets: the amount spent and left in the current window, and the turns that each budget parked.

    When 80 % of a budget is spent, webhooks receive a notice, once per window and amount.

    \b
    Examples:
      brainq budgets list
      brainq budgets list --json
    """
    with open_brainless_client() as client:
        rows = client.budgets.list()
    print_rows(rows, budgets_table, "no budgets; set BRAINQ_BUDGETS or run `brainq budgets set`", as_json=as_json)


@subcommand(app, "set")
def set_budget(
    scope: Scope,
    usd: Annotated[
        float | None, typer.Argument(help="US dollars per window. If omitted, BRAINQ_BUDGETS applies again.")
    ] = None,
    per: Period = "day",
    at_cap: Annotated[
        str,
        typer.Option(
            "--at-cap",
            help="What happens at the cap: park turns, refuse new turns, or finish with an answer without tools.",
        ),
    ] = "park",
    as_json: AsJson = False,
) -> None:
    """Set a budget. It overrides BRAINQ_BUDGETS.

    \b
    Examples:
      brainq budgets set all 100
      brainq budgets set "tenant acme:" 20 --per day --at-cap refuse
      brainq budgets set "tenant acme:"                    # back to the value in the settings
    """
    with open_brainless_client() as client:
        unpriced = client.budgets.set(scope, per=per, usd=usd, at_cap=at_cap, by=getpass.getuser())
    text = "is reset to the value in BRAINQ_BUDGETS"
    text = text if usd is None else f"is set to ${dollars(usd)} per {per}, then {at_cap}"
    value = {"scope": scope, "per": per, "usd": usd, "at_cap": at_cap, "unpriced_models": unpriced}
    print_outcome(value, f"Budget for {scope} {text}", as_json=as_json)
    if unpriced and not as_json:
        note(
            f"the price of {', '.join(unpriced)} is unknown, so this budget does not limit its cost; set the limit "
            "max_total_tokens for its turns",
            "yellow",
        )


@subcommand(app, "raise")
def raise_budget(
    scope: Scope,
    usd: Annotated[float, typer.Argument(help="US dollars to add to the current window.")],
    per: Period = "day",
    as_json: AsJson = False,
) -> None:
    """Raise a budget for its current window. Turns parked by it resume.

    \b
    Examples:
      brainq budgets raise all 25
      brainq budgets raise "tenant acme:" 5 --per day
    """
    with open_brainless_client() as client:
        cap = client.budgets.raise_by(scope, per, usd, by=getpass.getuser())
    text = f"Budget for {scope} raised to ${dollars(cap)} for this {per}; turns parked by it resume"
    print_outcome({"scope": scope, "per": per, "cap_usd": cap}, text, as_json=as_json)


def budgets_table(rows: Sequence[BudgetState]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key

    return PageTable(
        {
            key("budget"): clean(row.scope, lines=False),
            key("per"): row.per,
            fact("amount", 6, right=True): dollars(row.usd + row.raised_usd),
            fact("raised", 1, right=True): dollars(row.raised_usd) if row.raised_usd else "",
            fact("spent", 6, right=True): dollars(row.spent_usd),
            fact("held", 3, right=True): dollars(row.held_usd) if row.held_usd else "",
            fact("left", 5, right=True): "spent" if row.is_spent else dollars(row.left_usd),
            fact("used", 4, right=True): _used(row),
            fact("notice sent", 1): _noticed(row),
            fact("parked", 4, right=True): str(row.parked or ""),
            fact("at the cap", 2): row.at_cap,
            fact("until", 2): f"{row.ends_at:%Y-%m-%d %H:%M}",
        }
        for row in rows
    )


def _used(row: BudgetState) -> str:
    return f"{row.used_share:.0%}".replace("%", " %") if row.usd + row.raised_usd else ""


def _noticed(row: BudgetState) -> str:
    """Return when the notice was sent: the day for a monthly window, otherwise the time of day."""
    if row.noticed_at is None:
        return ""
    return f"{row.noticed_at:%m-%d %H:%M}" if row.per == "month" else f"{row.noticed_at:%H:%M}"
