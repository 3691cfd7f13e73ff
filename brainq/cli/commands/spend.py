"""`brainq spend`: report the cost of model calls by tenant, brain, model, tool and day."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_brainless_client
from brainq.cli.options import AsJson, parse_span_s
from brainq.cli.output import clean, counted, note, print_json, print_rows

if TYPE_CHECKING:
    from brainq.cli.pages.layout import Column, PageTable
    from brainq.contracts.spending import SpendBy, SpendLine

DEFAULT_SPAN = "30d"


def spend(
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="Group by day, tenant, brain, model, kind or tool; separate several with commas.",
        ),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="SPAN", help="Turns of the last 90m, 12h, 30d or 8w.")
    ] = DEFAULT_SPAN,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="PREFIX", help="Only this tenant: sessions with this prefix, such as acme:"),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the cost of model calls.

    A turn is included once its finalizer has logged it. Every model call counts: steps, reflections, summaries, memory
    extraction, judges, and interrupted requests. Estimated amounts are marked. With --by tool, tool calls are counted
    instead.

    \b
    Examples:
      brainq spend
      brainq spend --by tool,model --since 7d
      brainq spend --by tool --tenant acme:
      brainq spend --by day,tenant --csv > spend.csv
    """
    from brainq.contracts.spending import check_spend_by, spend_csv

    groups = check_spend_by([word for words in by or ["day"] for word in words.split(",") if word])
    began = datetime.now(UTC) - timedelta(seconds=parse_span_s("--since", since))
    with open_brainless_client() as client:
        lines = client.spend(by=groups, since=began, session_prefixes=None if tenant is None else (tenant,))
    if as_csv:
        sys.stdout.write(spend_csv(groups, lines))
    elif as_json:
        print_json(lines)
    else:
        print_rows(
            lines, lambda rows: spend_table(groups, rows), "no model calls were logged in this time", as_json=False
        )
        if lines and "tool" not in groups:
            note(_total(lines))


def spend_table(by: Sequence[SpendBy], lines: Sequence[SpendLine]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key

    table = PageTable()
    for line in lines:
        row: dict[Column, str] = {key(name): clean(getattr(line, name) or "-", lines=False) for name in by}
        row[fact("calls", 6, right=True)] = f"{line.calls:,}"
        if "tool" in by:
            row[fact("not completed", 5, right=True)] = f"{line.failed_calls:,}"
        else:
            row |= {
                fact("input", 4, right=True): f"{line.input_tokens:,}",
                fact("output", 4, right=True): f"{line.output_tokens:,}",
                fact("usd", 5, right=True): dollars(line.cost_usd),
                fact("estimated", 3, right=True): dollars(line.estimated_usd) if line.estimated_usd else "",
                fact("without a price", 2, right=True): f"{line.unpriced_calls:,}" if line.unpriced_calls else "",
            }
        table.add(row)
    return table


def dollars(usd: float) -> str:
    """Format an amount as `12.40`, with more digits for a small one: `0.00042`."""
    return f"{usd:,.2f}" if usd >= 1 or usd == 0 else f"{usd:.2g}" if usd < 0.001 else f"{usd:.4f}"


def _total(lines: Sequence[SpendLine]) -> str:
    estimated = sum(line.estimated_usd for line in lines)
    unpriced = sum(line.unpriced_calls for line in lines)
    text = f"{dollars(sum(line.cost_usd for line in lines))} US dollars"
    text += f", of which {dollars(estimated)} estimated" if estimated else ""
    return text + (f"; {counted(unpriced, 'call')} to models without a known price, not included" if unpriced else "")
