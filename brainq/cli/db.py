"""`brainq db`: the SQL schema."""

from __future__ import annotations

import typer

app = typer.Typer(help="The SQL schema.", rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def db() -> None:
    """The SQL schema."""


@app.command("upgrade")
def upgrade() -> None:
    """Bring the schema to this brainq's revision; safe to run again, and from several places at once.

    \b
    Example:
      BRAINQ_SQL_URL=postgresql://brainq@db/brainq brainq db upgrade
    """
    from brainq.cli.output import say
    from brainq.cli.reach import without_password
    from brainq.settings import load_settings
    from brainq.store.migrations import HEAD
    from brainq.store.store import Store

    url = load_settings().sql_url.get_secret_value()
    with Store.open(url):
        say(f"the schema at {without_password(url)} is at revision {HEAD}", style="green")
