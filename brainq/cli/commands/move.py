"""`brainq move`: move a tenant to another cell, with all its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_brainless_client
from brainq.cli.options import AsJson
from brainq.cli.output import note, print_outcome, print_rows
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.cell import Move, MoveStep

_NOTES = {
    "waiting": "new turns wait until the live ones have ended or are parked",
    "copying": "no turn is live; rows and keys are copied",
    "deciding": "the copies in the two cells are compared",
    "flipping": "the old cell now redirects callers to the new one",
    "cleaning": "the tenant is in the new cell; the old cell's copy is deleted",
    "undoing": "the move failed; the copy in the new cell is deleted",
}
_SHOWN_TURNS = 3


def move(
    tenant: Annotated[
        str | None, typer.Argument(help="The prefix of the tenant's sessions with its colon, such as acme:")
    ] = None,
    to_cell: Annotated[str | None, typer.Option("--to", metavar="CELL", help="The cell to move the tenant to.")] = None,
    wait_s: Annotated[float, typer.Option("--wait-s", min=0, help="How long to wait for live turns to end.")] = 60.0,
    list_moves: Annotated[
        bool, typer.Option("--list", help="List the moves in progress instead of starting one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move a tenant to another cell, with all its data.

    During the move, new turns of the tenant wait, and its live turns have --wait-s seconds to end or to park. Parked
    turns move too and continue in the new cell. If a turn is still live after that time, nothing is moved and the exit
    code is 8.

    If the command is interrupted, run it again: it continues where it stopped. After it was killed, it can continue 30
    s later.

    \b
    Examples:
      brainq move acme: --to b
      brainq move acme: --to b --wait-s 600
      brainq move --list
    """
    from brainq.client.connection import cells_of, connection_of
    from brainq.contracts.act import NewAct
    from brainq.runtime.leases import process_name
    from brainq.runtime.settings.extensions import load_extension

    tenant_mover = load_extension("brainq.cells", "mover")
    if list_moves:
        with open_brainless_client() as client:
            rows = tenant_mover(cells_of(client), process_name()).moves.all()
        print_rows(rows, _moves_table, "no moves in progress", as_json=as_json)
        return
    if tenant is None:
        raise InvalidInput("TENANT", "missing; name the tenant to move, such as acme:, or use --list")
    if to_cell is None:
        raise InvalidInput("--to", "missing; name the cell to move the tenant to (`brainq cells` lists them)")
    noted: list[str] = []

    def tell(step: MoveStep) -> None:
        if not as_json and step.phase in _NOTES and noted[-1:] != [step.phase]:
            note(f"  {step.phase:<9} {_NOTES[step.phase]}")
            noted.append(step.phase)
        if not as_json and step.waits_for and noted[-1] == "waiting":
            shown = ", ".join(step.waits_for[:_SHOWN_TURNS])
            note(f"            waiting for {len(step.waits_for)} turns: {shown}")
            noted.append("waiting for")

    with open_brainless_client() as client:
        done = tenant_mover(cells_of(client), process_name(), wait_s=wait_s, watch=tell).move(tenant, to_cell)
        if done.from_cell != done.to_cell:
            connection_of(client).record(NewAct("move", f"{tenant} {to_cell}"))
    if done.from_cell == done.to_cell:
        print_outcome(done, f"{tenant} is already in {to_cell}", as_json=as_json)
        return
    counts = ", ".join(f"{name} {count}" for name, count in done.counts.items() if count)
    print_outcome(
        done, f"{tenant} moved from {done.from_cell} to {to_cell}: {counts or 'it had no data'}", as_json=as_json
    )


def _moves_table(rows: Sequence[Move]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("tenant"): row.tenant,
            fact("from", 2): row.from_cell,
            fact("to", 2): row.to_cell,
            fact("phase", 5): row.phase,
            fact("since", 3): f"{row.started_at:%Y-%m-%d %H:%M:%S}",
            words("why", 1): row.error or "",
        }
        for row in rows
    )
