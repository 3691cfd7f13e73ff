"""`brainq move`: a tenant goes to another cell, with all that it has."""

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
    "waiting": "new turns wait; live ones end or park",
    "copying": "its sessions are at rest: rows and keys are copied",
    "deciding": "both cells are compared",
    "flipping": "decided: the old cell sends everybody on",
    "cleaning": "the new cell has it; what is left in the old one goes",
    "undoing": "it goes back to how it was",
}
_SHOWN_TURNS = 3


def move(
    tenant: Annotated[
        str | None, typer.Argument(help="What its sessions begin with, such as acme: with its colon.")
    ] = None,
    to_cell: Annotated[str | None, typer.Option("--to", metavar="CELL", help="Where it goes.")] = None,
    wait_s: Annotated[float, typer.Option("--wait-s", min=0, help="Seconds that its live turns have to end.")] = 60.0,
    list_moves: Annotated[bool, typer.Option("--list", help="Show moves under way, and move nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move a tenant to another cell, with all that it has.

    Its new turns wait meanwhile, and live ones end or park. Turns that are parked go along, and go on there. What does
    not end in time stays, and so does the tenant: exit code 8.

    If it is interrupted, run it again: it goes on from where it was. A killed one is taken up after 30 s.

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
        print_rows(rows, _moves_table, "no moves under way", as_json=as_json)
        return
    if tenant is None:
        raise InvalidInput("TENANT", "name the tenant that moves, such as acme:, or give --list")
    if to_cell is None:
        raise InvalidInput("--to", "name the cell that it goes to; `brainq cells` lists them")
    noted: list[str] = []

    def tell(step: MoveStep) -> None:
        if not as_json and step.phase in _NOTES and noted[-1:] != [step.phase]:
            note(f"  {step.phase:<9} {_NOTES[step.phase]}")
            noted.append(step.phase)
        if not as_json and step.waits_for and noted[-1] == "waiting":
            shown = ", ".join(step.waits_for[:_SHOWN_TURNS])
            note(f"            for {len(step.waits_for)}: {shown}")
            noted.append("waiting for")

    with open_brainless_client() as client:
        done = tenant_mover(cells_of(client), process_name(), wait_s=wait_s, watch=tell).move(tenant, to_cell)
        if done.from_cell != done.to_cell:
            connection_of(client).record(NewAct("move", f"{tenant} {to_cell}"))
    if done.from_cell == done.to_cell:
        print_outcome(done, f"{tenant} is in {to_cell} already", as_json=as_json)
        return
    counts = ", ".join(f"{name} {count}" for name, count in done.counts.items() if count)
    print_outcome(
        done, f"{tenant} moved from {done.from_cell} to {to_cell}: {counts or 'it had nothing'}", as_json=as_json
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
