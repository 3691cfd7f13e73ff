"""`brainq db`: the SQL schema, and how long its rows are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson

app = command_group("The SQL schema, and retention.")


@subcommand(app, "upgrade")
def upgrade() -> None:
    """Bring the schema to this brainq's revision. Safe to run again, and from several places at once.

    \b
    Example:
      BRAINQ_SQL_URL=postgresql://brainq@db/brainq brainq db upgrade
    """
    from brainq.cli.output import note
    from brainq.observe.logs import without_password
    from brainq.settings.deployment import load_settings
    from brainq.store.migrations import HEAD
    from brainq.store.store import Store

    url = load_settings().sql_url.get_secret_value()
    with Store.open(url):
        note(f"the schema at {without_password(url)} is at revision {HEAD}", style="green")


@subcommand(app, "prune")
def prune(
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
    transactions, and may be interrupted.

    \b
    Examples:
      brainq db prune --older-than 30d --dry-run
      brainq db prune --older-than 30d --yes        for cron
    """
    from brainq.cli.actions import prune as pruning
    from brainq.cli.output import print_json
    from brainq.settings.deployment import load_settings
    from brainq.store.engine import require_file
    from brainq.store.store import Store

    pruning.parse_age_s(older_than)
    url = load_settings().sql_url.get_secret_value()
    require_file(url)
    with Store.open(url, migrate=False, answer_s=None) as store:
        counts = pruning.run_prune(store, older_than, knowledge=knowledge, dry_run=dry_run, confirmed=yes)
        sqlite = store.engine.dialect.name == "sqlite"
    if as_json:
        print_json({"deleted": not dry_run and counts is not None, "rows": counts or {}})
    else:
        pruning.print_counts(counts, older_than, dry_run=dry_run, sqlite=sqlite)
