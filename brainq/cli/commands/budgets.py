"""`brainq budgets`: how much money model calls may cost by hour, day and month; setting and raising that."""

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

app = command_group("How much money model calls may cost.")
Scope = Annotated[str, typer.Argument(help='all, tenant, user, brain; or one: "tenant acme:", "brain support".')]
Period = Annotated[str, typer.Option("--per", metavar="WINDOW", help="hour, day or month.")]


@subcommand(app, "list")
def list_budgets(as_json: AsJson = False) -> None:
    """List the budgets in their present windows: what is left, and how many turns are parked for each.

    At four fifths of a budget a notice is sent to webhooks (docs/wires/webhooks.md), once for each window and amount.

    \b
    Examples:
      brainq budgets list
      brainq budgets list --json
    """
    with open_brainless_client() as client:
        rows = client.budgets.list()
    print_rows(rows, budgets_table, "no budgets; BRAINQ_BUDGETS or `brainq budgets set` makes some", as_json=as_json)


@subcommand(app, "set")
def set_budget(
    scope: Scope,
    usd: Annotated[
        float | None, typer.Argument(help="US dollars a window; left out: as BRAINQ_BUDGETS has it.")
    ] = None,
    per: Period = "day",
    at_cap: Annotated[
        str, typer.Option("--at-cap", help="park turns, refuse new ones, or finish with an answer without tools.")
    ] = "park",
    as_json: AsJson = False,
) -> None:
    """Set a budget, over what BRAINQ_BUDGETS says.

    \b
    Examples:
      brainq budgets set all 100
      brainq budgets set "tenant acme:" 20 --per day --at-cap refuse
      brainq budgets set "tenant acme:"                    # as the settings have it again
    """
    with open_brainless_client() as client:
        unpriced = client.budgets.set(scope, per=per, usd=usd, at_cap=at_cap, by=getpass.getuser())
    text = "is as BRAINQ_BUDGETS has it" if usd is None else f"is {dollars(usd)} US dollars a {per}, then {at_cap}"
    value = {"scope": scope, "per": per, "usd": usd, "at_cap": at_cap, "unpriced_models": unpriced}
    print_outcome(value, f"{scope} {text}", as_json=as_json)
    if unpriced and not as_json:
        note(
            f"no price is known of {', '.join(unpriced)}: this budget does not hold what that costs; hold its turns by "
            "max_total_tokens",
            "yellow",
        )


@subcommand(app, "raise")
def raise_budget(
    scope: Scope,
    usd: Annotated[float, typer.Argument(help="US dollars more, for the window that goes on.")],
    per: Period = "day",
    as_json: AsJson = False,
) -> None:
    """Let a budget's present window have more. Turns that are parked for it go on.

    \b
    Examples:
      brainq budgets raise all 25
      brainq budgets raise "tenant acme:" 5 --per day
    """
    with open_brainless_client() as client:
        cap = client.budgets.raise_by(scope, per, usd, by=getpass.getuser())
    text = f"{scope} may cost {dollars(cap)} US dollars this {per}; turns that are parked for it go on"
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
    """When people were told, in the window's own terms: its day, or the time of day."""
    if row.noticed_at is None:
        return ""
    return f"{row.noticed_at:%m-%d %H:%M}" if row.per == "month" else f"{row.noticed_at:%H:%M}"
