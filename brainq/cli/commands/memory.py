"""`brainq memory`: list and forget the memories of brains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_brainless_client, open_client
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Limit
from brainq.cli.output import clean, counted, print_outcome, print_rows
from brainq.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from brainq.cli.pages.layout import PageTable
    from brainq.client.client import Client
    from brainq.contracts.rows import MemoryRow

app = command_group("List and forget memories, which brains keep across turns.")
Session = Annotated[
    str | None, typer.Option("--session", "-s", help="Use the memory scope that the brain derives from this session.")
]


@subcommand(app, "list")
def list_memories(
    scope: Annotated[
        str | None, typer.Argument(help="A session, or the scope that Memory(scope=...) derives from it.")
    ] = None,
    session: Session = None,
    limit: Limit = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="The next page: memories after this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the memories of one scope, newest first.

    \b
    Examples:
      brainq memory list ann
      brainq memory list --session ann.1 --json
    """
    with _client(session) as client:
        rows = client.memories.list(scope, session=session, limit=limit, after=after)
    print_rows(rows, _memories_table, "no memories", as_json=as_json)


def _memories_table(rows: Sequence[MemoryRow]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("id"): str(row.row),
            fact("kind", 2): row.kind,
            fact("mentioned", 3): f"{row.updated_at:%Y-%m-%d}",
            fact("session", 1): row.session_id,
            words("text", 4): clean(row.text, lines=False),
        }
        for row in rows
    )


@subcommand(app, "forget")
def forget(
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The id of one memory, from `brainq memory list`.")
    ] = None,
    scope: Annotated[str | None, typer.Option("--scope", help="Forget all memories of this scope.")] = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Delete one memory permanently, or all memories and observations of a scope.

    \b
    Examples:
      brainq memory forget 17
      brainq memory forget --scope ann
    """
    if sum(choice is not None for choice in (memory_id, scope, session)) != 1:
        raise InvalidInput("ID", "give exactly one of MEMORY, --scope and --session")
    with _client(session) as client:
        if memory_id is None:
            forgotten = client.memories.forget_all(scope, session=session)
        else:
            forgotten = int(client.memories.forget(memory_id))
    outcome = (
        f"{counted(forgotten, 'memory', 'memories')} forgotten"
        if forgotten
        else "no memory matches; nothing was deleted"
    )
    print_outcome({"forgotten": forgotten}, outcome, ok=bool(forgotten), exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def _client(session: str | None) -> AbstractContextManager[Client]:
    """Open a client. It has the brain's code only if the scope has to be derived from a session."""
    return open_brainless_client() if session is None else open_client()
