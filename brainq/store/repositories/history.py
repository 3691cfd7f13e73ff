"""A session's past turns as (user, assistant) pairs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from brainq.store.database import Record
from brainq.store.tables import messages, turns

_BEYOND_ALL_ROWS = 2**62

_this_row = select(turns.c.row).where(turns.c.turn_id == bindparam("before")).scalar_subquery()
_last = (
    select(turns.c.turn_id, turns.c.row)
    .join(messages, messages.c.turn_id == turns.c.turn_id)
    .where(
        turns.c.session_id == bindparam("session"),
        turns.c.row < func.coalesce(_this_row, _BEYOND_ALL_ROWS),
        messages.c.role == "assistant",
        messages.c.seq == 0,
    )
    .order_by(turns.c.row.desc())
    .limit(bindparam("limit"))
    .subquery("last")
)

HISTORY = (
    select(messages.c.turn_id, messages.c.role, messages.c.content, messages.c.redacted)
    .join(_last, _last.c.turn_id == messages.c.turn_id)
    .order_by(_last.c.row, messages.c.row)
)


def pair_up(found: Sequence[Record]) -> list[tuple[str, str]]:
    """Rows of HISTORY to pairs; several messages of one role in a turn are joined by an empty line."""
    by_turn: dict[str, dict[str, list[str]]] = {}
    hidden: set[str] = set()
    for row in found:
        by_turn.setdefault(row["turn_id"], {}).setdefault(row["role"], []).append(row["content"])
        if row["redacted"]:
            hidden.add(row["turn_id"])
    return [
        ("\n\n".join(said["user"]), "\n\n".join(said["assistant"]))
        for turn_id, said in by_turn.items()
        if turn_id not in hidden and "user" in said and "assistant" in said
    ]
