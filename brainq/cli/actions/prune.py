"""`brainq db prune`: its question, its progress and its counts."""

from __future__ import annotations

import sys

import typer
from rich.text import Text

from brainq.cli.options import UNIT_SECONDS, parse_span_s
from brainq.cli.output import counted, note, stderr, stdout
from brainq.cli.pages.layout import PageTable, fact, key
from brainq.errors import InvalidInput
from brainq.store.prune import PrunedRows, prune
from brainq.store.store import Store

AGE_OPTION = "--older-than"
MIN_AGE_S = 3600.0  # finalizers may still be at work at newer turns, and Redis holds them that long
MAX_AGE_S = 5000 * UNIT_SECONDS["w"]  # databases do not count back beyond the year 0


def parse_age_s(value: str) -> float:
    """Seconds of `90m`, `12h`, `30d` or `8w`. Raises InvalidInput for anything else, and beyond 1h to 5000w."""
    seconds = parse_span_s(AGE_OPTION, value)
    if seconds < MIN_AGE_S:
        raise InvalidInput(AGE_OPTION, f"{value!r} is too young: finalizers may still be at work; the least is 1h")
    if seconds > MAX_AGE_S:
        raise InvalidInput(AGE_OPTION, f"{value!r} is before anything was kept; the most is 5000w")
    return seconds


def run_prune(store: Store, older_than: str, *, knowledge: bool, dry_run: bool, confirmed: bool) -> PrunedRows | None:
    """Prune, after asking; returns what was (or would be) deleted, or None when the question was answered with no.

    Raises InvalidInput when there is no terminal to ask at.
    """
    seconds = parse_age_s(older_than)
    if dry_run:
        return prune(store, seconds, knowledge=knowledge, dry_run=True)
    if not confirmed:
        if not sys.stdin.isatty():
            raise InvalidInput(
                "--yes", "there is no terminal to confirm at; add --yes, or --dry-run to see what would go"
            )
        planned = prune(store, seconds, knowledge=knowledge, dry_run=True)
        if not any(planned.values()):
            return planned
        stderr().print(counts_table(planned))
        if not typer.confirm(f"Delete these {sum(planned.values()):,} rows for good?", err=True):
            return None
    with stderr().status("looking for what is over ...") as status:
        return prune(
            store,
            seconds,
            knowledge=knowledge,
            on_progress=lambda counts: status.update(
                f"deleted {counted(counts['turns'], 'turn')}, {sum(counts.values()):,} rows in all ..."
            ),
        )


def print_counts(counts: PrunedRows | None, older_than: str, *, dry_run: bool, sqlite: bool) -> None:
    """Print what happened, for people."""
    if counts is None:
        note("nothing was deleted")
        return
    if not any(counts.values()):
        note(f"nothing is over and older than {older_than.strip()}")
        return
    stdout().print(counts_table(counts))
    if dry_run:
        note(f"{counted(counts['turns'], 'turn')} would go; nothing was deleted", style="yellow")
        return
    note(f"{counted(counts['turns'], 'turn')} deleted, {sum(counts.values()):,} rows in all", style="green")
    if sqlite:
        note("the file keeps its size, and uses the room again; docs/operations.md says how to VACUUM it")


def counts_table(counts: PrunedRows) -> PageTable:
    table = PageTable()
    for name, rows in counts.items():
        table.add({key("table"): name, fact("rows", 1, right=True): Text(f"{rows:,}", "" if rows else "dim")})
    return table
