"""Which turn somebody means who writes the beginning of its id."""

from __future__ import annotations

from brainq.contracts.rows import TurnRow
from brainq.errors import InvalidInput, TurnNotFound
from brainq.store.store import Store

SHOWN_MATCHES = 5


def find_turn(store: Store, sought: str) -> TurnRow:
    """The turn with this id or request key, or the one whose id begins like this.

    Raises TurnNotFound, or InvalidInput when several begin like this.
    """
    found = store.turns.find(sought) if sought else []
    exact = [row for row in found if sought in (row.turn_id, row.request_key)]
    if len(exact) == 1:
        return exact[0]
    if not found:
        raise TurnNotFound(
            f"no turn has the id, the beginning of an id, or the request key {sought!r}; see `brainq list`"
        )
    if len(found) > 1:
        ids = ", ".join(row.turn_id for row in found[:SHOWN_MATCHES])
        more = ", ..." if len(found) > SHOWN_MATCHES else ""
        raise InvalidInput("TURN", f"several turns begin with {sought!r}: {ids}{more}; give more of the id")
    return found[0]
