"""`brainq db`: the SQL schema, and how long its rows are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import UNIT_SECONDS, AsJson, parse_span_s
from brainq.cli.output import counted, note, print_json, stderr, stdout
from brainq.errors import InvalidInput, SetupError

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.settings.deployment import Settings
    from brainq.store.prune import PrunedRows
    from brainq.store.store import Store

app = command_group("The SQL schema, and retention.")
AGE_OPTION = "--older-than"
MIN_AGE_S = 3600.0  # finalizers may still be at work at newer turns, and Redis holds them that long
MAX_AGE_S = 5000 * UNIT_SECONDS["w"]  # databases do not count back beyond the year 0


@subcommand(app, "upgrade")
def upgrade() -> None:
    """Bring the schema to this brainq's revision. Safe to run again, and from several places at once.

    \b
    Example:
      BRAINQ_SQL_URL=postgresql://brainq@db/brainq brainq db upgrade
    """
    from brainq.settings.deployment import load_settings
    from brainq.store.migrations.upgrade import HEAD
    from brainq.store.store import Store
    from brainq.text.service_url import without_password

    def bring(settings: Settings) -> None:
        url = settings.sql_address
        with Store.open(url, keys=settings.key_place):
            note(f"the schema at {without_password(url)} is at revision {HEAD}", style="green")

    _in_each_cell(load_settings(), bring)


@subcommand(app, "prune")
def prune_turns(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago they ended: 90m, 12h, 30d, 8w.")
    ],
    knowledge: Annotated[
        bool, typer.Option("--memories", help="Memories and observations not seen since then go, too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would go, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete turns that ended long ago, with all their rows.

    Turns that have not ended stay, and those a finalizer or a judge still works at. Memories are kept unless you
    say otherwise. The database must be there, with this brainq's schema. It runs beside live workers, in short
    transactions, and may be interrupted. Of several cells all are pruned, unless BRAINQ_CELL names one.

    \b
    Examples:
      brainq db prune --older-than 30d --dry-run
      brainq db prune --older-than 30d --yes        for cron
    """
    from brainq.settings.deployment import load_settings
    from brainq.store.engine import require_file
    from brainq.store.store import Store

    seconds = parse_age_s(older_than)
    answers: list[PrunedRows | None] = []
    dialects = set[str]()

    def prune_in(settings: Settings) -> None:
        url = settings.sql_address
        require_file(url)
        with Store.open(url, migrate=False, answer_s=None, keys=settings.key_place) as store:
            dialects.add(store.engine.dialect.name)
            answers.append(run_prune(store, seconds, knowledge=knowledge, dry_run=dry_run, confirmed=yes))

    try:
        _in_each_cell(load_settings(), prune_in)
    finally:
        if answers:
            counts = _sum_rows(answers)
            if as_json:
                print_json({"deleted": not dry_run and counts is not None, "rows": counts or {}})
            else:
                _print_counts(counts, older_than, dry_run=dry_run, sqlite="sqlite" in dialects)


def _in_each_cell(settings: Settings, work: Callable[[Settings], None]) -> None:
    """Of several cells each, home first, unless BRAINQ_CELL names one. One that cannot be worked at keeps it from no
    other: it is named at once, and what it raised is raised at last."""
    if not settings.in_cells or settings.cell:
        work(settings)
        return
    failed: SetupError | None = None
    for cell in settings.all_cells():
        note(f"cell {cell.name}")
        try:
            work(settings.of_cell(cell))
        except SetupError as failure:
            note(f"cell {cell.name}: {failure}", style="red")
            failed = failed or failure
    if failed is not None:
        raise failed


def _sum_rows(answers: Sequence[PrunedRows | None]) -> PrunedRows | None:
    """By table; None where every question was answered with no."""
    found = [counts for counts in answers if counts is not None]
    names = dict.fromkeys(name for counts in found for name in counts)
    return {name: sum(counts.get(name, 0) for counts in found) for name in names} if found else None


def parse_age_s(value: str) -> float:
    """Seconds of `90m`, `12h`, `30d` or `8w`. Raises InvalidInput for anything else, and beyond 1h to 5000w."""
    seconds = parse_span_s(AGE_OPTION, value)
    if seconds < MIN_AGE_S:
        raise InvalidInput(AGE_OPTION, f"{value!r} is too young: finalizers may still be at work; the least is 1h")
    if seconds > MAX_AGE_S:
        raise InvalidInput(AGE_OPTION, f"{value!r} is before anything was kept; the most is 5000w")
    return seconds


def run_prune(store: Store, seconds: float, *, knowledge: bool, dry_run: bool, confirmed: bool) -> PrunedRows | None:
    """Prune, after asking; returns what was (or would be) deleted, or None when the question was answered with no.

    Raises InvalidInput when there is no terminal to ask at.
    """
    from brainq.store.prune import prune

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
        stderr().print(_counts_table(planned))
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


def _print_counts(counts: PrunedRows | None, older_than: str, *, dry_run: bool, sqlite: bool) -> None:
    """Print what happened, for people."""
    if counts is None:
        note("nothing was deleted")
        return
    if not any(counts.values()):
        note(f"nothing is over and older than {older_than.strip()}")
        return
    stdout().print(_counts_table(counts))
    if dry_run:
        note(f"{counted(counts['turns'], 'turn')} would go; nothing was deleted", style="yellow")
        return
    note(f"{counted(counts['turns'], 'turn')} deleted, {sum(counts.values()):,} rows in all", style="green")
    if sqlite:
        note("the file keeps its size, and uses the room again; docs/operate/operations.md says how to VACUUM it")


def _counts_table(counts: PrunedRows) -> PageTable:
    from rich.text import Text

    from brainq.cli.pages.layout import PageTable, fact, key

    return PageTable(
        {key("table"): name, fact("rows", 1, right=True): Text(f"{rows:,}", "" if rows else "dim")}
        for name, rows in counts.items()
    )
