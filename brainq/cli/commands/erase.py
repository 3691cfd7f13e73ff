"""`brainq erase`: delete everything about a session or a tenant, and verify that nothing is left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_operator
from brainq.cli.options import AsJson
from brainq.cli.output import counted, note, print_page
from brainq.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from brainq.contracts.erasure import Erasure


def erase(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Erase this session.")] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Erase every session of this tenant, such as acme: with its colon.")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who requested it, for the receipt.")] = "",
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Also write the receipt to this file, as JSON.")
    ] = None,
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for live turns to end.")] = 60.0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a session or a tenant for good, with a receipt.

    This deletes its rows in SQL, keys in Redis, files, memories, schedules and deliveries. It cannot be undone.

    Live turns are cancelled first, and workers end them. After the deletion a second pass verifies that nothing is
    left; the exit code is 1 if something is. Running it again is safe. Not deleted are tokens (use
    `brainq token revoke`), backups, and data in your own tools and webhooks: docs/operate/erasure.md.

    \b
    Examples:
      brainq erase --session acme:42
      brainq erase --tenant acme: --by "ticket 4711" --receipt erased-acme.json --yes
    """
    from brainq.contracts.erasure import ErasureScope

    scope = ErasureScope.of(session, tenant)
    if not yes and not sys.stdin.isatty():
        raise InvalidInput("--yes", "there is no terminal to confirm at; add --yes")
    if not yes and not typer.confirm(f"Erase everything about {scope}, for good?", err=True):
        raise typer.Exit(ExitCode.REFUSED)
    with open_operator() as operator:
        done = operator.erase(session=session, tenant=tenant, by=by, wait_s=wait_s)
    if receipt is not None:
        receipt.write_text(done.model_dump_json(indent=2) + "\n", encoding="utf-8")
    print_page(done, _print, as_json=as_json)
    if done.left:
        raise typer.Exit(ExitCode.FAILED)


def _print(out: Console, done: Erasure) -> None:
    rows = ", ".join(f"{table} {count}" for table, count in done.rows.items())
    left = ", ".join(f"{place} {count}" for place, count in done.left.items())
    out.print(f"{counted(done.turns, 'turn')} of {done.scope} erased", highlight=False)
    out.print(f"  SQL    {rows or 'nothing'}", highlight=False)
    out.print(f"  Redis  {counted(done.keys, 'key')}", highlight=False)
    out.print(f"  left   {left or 'nothing'}", style="red" if left else "green", highlight=False)
    for each in done.notes:
        note(each)
