"""A turn's number: its place among the accepted turns of its session, from 1, also after earlier ones are gone."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ScalarSelect, func, select

from brainq.store.tables import pruned_sessions, turns
from brainq.store.tables.types import greater_of

_T = turns.c
_KEPT = turns.alias("kept")
_SINCE = turns.alias("since")
_P = pruned_sessions.c


def _of_kept(column: Column[Any]) -> ScalarSelect[Any]:
    """Of the nearest earlier turn whose number is written down: as a rule the one just before."""
    return (
        select(column)
        .where(_KEPT.c.session_id == _T.session_id, _KEPT.c.row < _T.row, _KEPT.c.turn_number.is_not(None))
        .order_by(_KEPT.c.row.desc())
        .limit(1)
        .correlate(turns)
        .scalar_subquery()
    )


def _of_pruned(column: Column[Any]) -> ScalarSelect[Any]:
    """Of the session's newest turn that was pruned. `store.prune` leaves no turn before it without a number."""
    return (
        select(column)
        .where(_P.session_id == _T.session_id, _P.turn_row < _T.row)
        .correlate(turns)
        .scalar_subquery()
    )


# Numbers grow with rows, so of the two the later one has the greater of both. From there it is counted.
_KNOWN_NUMBER = greater_of(
    func.coalesce(_of_kept(_KEPT.c.turn_number), 0), func.coalesce(_of_pruned(_P.turn_number), 0)
)
_KNOWN_ROW = greater_of(func.coalesce(_of_kept(_KEPT.c.row), 0), func.coalesce(_of_pruned(_P.turn_row), 0))
_COUNTED = (
    select(func.count())
    .select_from(_SINCE)
    .where(
        _SINCE.c.session_id == _T.session_id,
        _SINCE.c.row > _KNOWN_ROW,
        _SINCE.c.row <= _T.row,
        _SINCE.c.state != "rejected",
    )
    .correlate(turns)
    .scalar_subquery()
)

POSITION = _KNOWN_NUMBER + _COUNTED
"""For statements over `turns`: the number of a turn that has none yet. Costs as much as the session has turns
that have not ended, not as much as it has turns."""
