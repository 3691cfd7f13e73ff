"""`brainq erase`: delete everything about a session or a tenant, and verify that nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_operator
from brainq.cli.options import AsJson, Yes, require_consent
from brainq.cli.output import counted, note, print_page
from brainq.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from brainq.contracts.erasure import Erasure


def erase(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Erase this session.")] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", help="Erase every session of this tenant. Give its prefix with the colon, such as acme:"
        ),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="The person or ticket that requested the erasure, for the receipt.")
    ] = "",
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Also write the receipt to this file, as JSON.")
    ] = None,
    wait_s: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for live turns to end.")] = 60.0,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase a session or a tenant permanently, with a receipt.

    This deletes its rows in SQL, keys in Redis, files, memories, schedules and webhook deliveries. It cannot be undone.

    Live turns are cancelled first. After the deletion, a second pass checks that nothing is left; if something is, the
    exit code is 1. It is safe to run the command again. It does not delete tokens (use `brainq token revoke`), backups,
    or data in your own tools and webhooks: see docs/operate/erasure.md.

    \b
    Examples:
      brainq erase --session acme:42
      brainq erase --tenant acme: --by "ticket 4711" --receipt erased-acme.json --yes
    """
    from brainq.contracts.erasure import ErasureScope

    scope = ErasureScope.of(session, tenant)
    require_consent(f"Erase all data of {scope} permanently?", yes=yes)
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
