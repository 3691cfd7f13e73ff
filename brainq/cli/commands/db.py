"""`brainq db`: upgrade the SQL schema, and delete old turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import NO_TERMINAL, UNIT_SECONDS, AsJson, Yes, parse_span_s
from brainq.cli.output import counted, note, print_json, stderr, stdout
from brainq.errors import InvalidInput, SetupError

if TYPE_CHECKING:
    from brainq.adapters.sql.prune import PrunedRows
    from brainq.adapters.sql.store import Store
    from brainq.cli.pages.layout import PageTable
    from brainq.runtime.settings.deployment import Settings

app = command_group("The SQL schema, and retention.")
AGE_OPTION = "--older-than"
MIN_AGE_S = 3600.0  # finalizers may still work on newer turns, and Redis keeps them that long
MAX_AGE_S = 5000 * UNIT_SECONDS["w"]  # databases cannot represent times before the year 0


@subcommand(app, "upgrade")
def upgrade() -> None:
    """Upgrade the schema to this version of brainq. It is safe to run repeatedly, and from several machines at once.

    \b
    Example:
      BRAINQ_SQL_URL=postgresql://brainq@db/brainq brainq db upgrade
    """
    from brainq.adapters.sql.migrations.upgrade import HEAD
    from brainq.adapters.sql.store import Store
    from brainq.runtime.settings.deployment import load_settings
    from brainq.runtime.text.service_url import without_password

    def bring(settings: Settings) -> None:
        url = settings.sql_address
        with Store.open(url, keys=settings.key_place):
            note(f"the schema at {without_password(url)} is at revision {HEAD}", style="green")

    _in_each_cell(load_settings(), bring)


@subcommand(app, "prune")
def prune_turns(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="AGE", help="Delete turns that ended longer ago than this: 90m, 12h, 30d, 8w."
        ),
    ],
    knowledge: Annotated[
        bool,
        typer.Option(
            "--memories", help="Also delete memories and observations that have not been updated for that long."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows and delete nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete turns that ended long ago, with all their rows.

    Turns that have not ended are kept, and so are turns that a finalizer or a judge is still working on. Memories are
    kept unless you pass --memories. The database must exist and have the current schema. You can run this next to live
    workers, because it uses short transactions, and you can interrupt it. It prunes all cells, or only the one that
    BRAINQ_CELL names.

    \b
    Examples:
      brainq db prune --older-than 30d --dry-run
      brainq db prune --older-than 30d --yes        for cron
    """
    from brainq.adapters.sql.engine import require_file
    from brainq.adapters.sql.store import Store
    from brainq.runtime.settings.deployment import load_settings

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
    """Run `work` for each cell, beginning with the home cell, or only for the cell that BRAINQ_CELL names.

    An error in one cell is printed at once, and the other cells still run. The error is raised at the end.
    """
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
    """Return the number of rows by table, summed over the cells. Returns None if no cell was confirmed."""
    found = [counts for counts in answers if counts is not None]
    names = dict.fromkeys(name for counts in found for name in counts)
    return {name: sum(counts.get(name, 0) for counts in found) for name in names} if found else None


def parse_age_s(value: str) -> float:
    """Return the seconds of `90m`, `12h`, `30d` or `8w`. Raises InvalidInput if the span is not within 1h to 5000w."""
    seconds = parse_span_s(AGE_OPTION, value)
    if seconds < MIN_AGE_S:
        raise InvalidInput(
            AGE_OPTION,
            f"{value!r} is too short, because finalizers may still be working on such turns; the minimum is 1h",
        )
    if seconds > MAX_AGE_S:
        raise InvalidInput(AGE_OPTION, f"{value!r} is too long; the maximum is 5000w")
    return seconds


def run_prune(store: Store, seconds: float, *, knowledge: bool, dry_run: bool, confirmed: bool) -> PrunedRows | None:
    """Prune after a confirmation. Returns the deleted rows by table, or None if the confirmation was declined.

    Raises InvalidInput if there is no terminal for the confirmation.
    """
    from brainq.adapters.sql.prune import prune

    if dry_run:
        return prune(store, seconds, knowledge=knowledge, dry_run=True)
    if not confirmed:
        if not sys.stdin.isatty():
            raise InvalidInput("--yes", NO_TERMINAL + ", or --dry-run to see what would be deleted")
        planned = prune(store, seconds, knowledge=knowledge, dry_run=True)
        if not any(planned.values()):
            return planned
        stderr().print(_counts_table(planned))
        if not typer.confirm(f"Delete these {sum(planned.values()):,} rows permanently?", err=True):
            return None
    with stderr().status("searching for old turns ...") as status:
        return prune(
            store,
            seconds,
            knowledge=knowledge,
            on_progress=lambda counts: status.update(
                f"deleted {counted(counts['turns'], 'turn')}, {sum(counts.values()):,} rows in all ..."
            ),
        )


def _print_counts(counts: PrunedRows | None, older_than: str, *, dry_run: bool, sqlite: bool) -> None:
    """Print the number of deleted rows."""
    if counts is None:
        note("nothing was deleted")
        return
    if not any(counts.values()):
        note(f"nothing was deleted: no turn ended more than {older_than.strip()} ago")
        return
    stdout().print(_counts_table(counts))
    if dry_run:
        note(f"{counted(counts['turns'], 'turn')} would be deleted; nothing was deleted", style="yellow")
        return
    note(f"{counted(counts['turns'], 'turn')} deleted, {sum(counts.values()):,} rows in all", style="green")
    if sqlite:
        note(
            "the database file keeps its size and reuses the freed space; to shrink it, see VACUUM in "
            "docs/operate/operations.md"
        )


def _counts_table(counts: PrunedRows) -> PageTable:
    from rich.text import Text

    from brainq.cli.pages.layout import PageTable, fact, key

    return PageTable(
        {key("table"): name, fact("rows", 1, right=True): Text(f"{rows:,}", "" if rows else "dim")}
        for name, rows in counts.items()
    )
