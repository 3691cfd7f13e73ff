"""Memories: list and delete what brains remember across turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.client import checks
from brainq.client.cell_lists import find_row, list_memories
from brainq.client.connection import connection_of
from brainq.contracts.act import NewAct
from brainq.contracts.cell import RowId
from brainq.contracts.ids import check_id
from brainq.contracts.rows import MemoryRow
from brainq.engine.brain.brains import Brains
from brainq.errors import CellUnreachable, InvalidInput

if TYPE_CHECKING:
    from brainq.client.client import Client

MAX_SCOPE_CHARS = 1_000


class Memories:
    """The memories that brains keep across turns: `client.memories`.

        for memory in client.memories.list("ann"):
            print(memory.row, memory.text)
        client.memories.forget_all("ann")

    Memories belong to a scope: the session, or what the brain's `Memory(scope=...)` makes of its id. A verb takes the
    scope itself, or `session=`, and then takes the scope that this client's brains give the session.
    """

    def __init__(self, client: Client) -> None:
        self._connection = connection_of(client)

    def list(
        self,
        scope: str | None = None,
        *,
        session: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        after: RowId | None = None,
    ) -> tuple[MemoryRow, ...]:
        """List the memories of one scope, the newest first.

        scope, session: one of them; see the class.
        limit: memories a page, up to 10,000.
        session_prefixes: memories first mentioned in a session that begins with one of these, such as ("acme:",).
        after: the `row` of the last memory of the previous page.

        Raises InvalidInput.
        """
        scopes, theirs = self._scopes(scope, session), checks.session_prefixes(session_prefixes)
        most = checks.limit(limit)
        return self._connection.read_all(lambda cells: list_memories(cells, scopes, session, most, after, theirs))

    def forget(self, memory: RowId, *, session_prefixes: Sequence[str] | None = None) -> bool:
        """Delete one memory permanently, selected by its `row`. Returns False if there is no such memory.

        session_prefixes: delete it only if it was first mentioned in a session that begins with one of these.

        Raises InvalidInput.
        """
        theirs = checks.session_prefixes(session_prefixes)

        def forget(cells: Cells) -> bool:
            wiring, row = find_row(cells, "memory", memory)
            return wiring.store.memories.forget(row, theirs)

        return self._connection.do_in_all(forget, NewAct("forget", str(memory)))

    def forget_all(
        self, scope: str | None = None, *, session: str | None = None, session_prefixes: Sequence[str] | None = None
    ) -> int:
        """Delete all memories of one scope, and the learner's observations in it, permanently. Returns their number.

        The arguments are those of `list`. Turns are not changed. A turn whose finalizer is still running may add a
        memory again, and so may a person who repeats something. Raises InvalidInput.
        """
        scopes, theirs = self._scopes(scope, session), checks.session_prefixes(session_prefixes)

        def forget(wiring: Wiring) -> int:
            store = wiring.store
            with store.database.transaction() as connection:
                return store.memories.forget_all(connection, scopes, theirs) + store.observations.forget_all(
                    connection, scopes, theirs
                )

        def forget_in_each(cells: Cells) -> int:
            asked = cells.ask(forget, session, theirs)
            if asked.away:
                raise CellUnreachable(asked.away[0], "its memories were not deleted; repeat this when the cell is back")
            return sum(asked.values)

        return self._connection.do_in_all(forget_in_each, NewAct("forget", scope or session or ""))

    def _scopes(self, scope: str | None, session: str | None) -> tuple[str, ...]:
        if (scope is None) is (session is None):
            raise InvalidInput("scope", "pass either `scope` or `session`")
        if session is not None:
            return scopes_of_session(self._connection.cells.home.brains, check_id("session", session))
        return (checks.text("scope", scope, MAX_SCOPE_CHARS),)


def scopes_of_session(brains: Brains, session_id: str) -> tuple[str, ...]:
    """Return the scopes whose memories this session reads and writes: one, unless brains differ. Pure.

    Raises InvalidInput if no brain here has a memory.
    """
    scopes = [brain.memory.scope_of(session_id) for brain in brains if brain.memory is not None]
    if not scopes:
        raise InvalidInput(
            "session", "no brain loaded here has memory=Memory(...), so its scope is unknown; pass the scope instead"
        )
    return tuple(dict.fromkeys(scopes))
