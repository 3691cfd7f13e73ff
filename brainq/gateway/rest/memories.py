"""Memories that brains keep across turns. A caller sees those first learned in its own sessions."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from brainq.cells.cells import cells_away
from brainq.client.memories import MAX_SCOPE_CHARS
from brainq.contracts.cell import RowId
from brainq.contracts.memory import MemoryKind
from brainq.contracts.rows import MemoryRow
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import ID
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, AfterRow, Answer, ChangeAnswer, Limit, ListPage, RowInPath

router = APIRouter(prefix="/v1/memories", tags=["memories"])
ScopeQuery = Annotated[str | None, Query(max_length=MAX_SCOPE_CHARS, description="Whose memories; this or `session`.")]
SessionQuery = Annotated[
    str | None, Query(pattern=ID, description="The scope is that which the brains give this session.")
]


class MemoryItem(Answer):
    """One memory. `session_id` and `turn_id` are where it was first learned; `updated_at` is its last observation."""

    id: RowId
    scope: str
    kind: MemoryKind
    text: str
    times_seen: int
    session_id: str
    turn_id: str
    created_at: datetime
    updated_at: datetime


class MemoryPage(ListPage):
    """Memories, the newest first. `next`, given as `after`, is the next page; null: this is the last."""

    memories: tuple[MemoryItem, ...]
    next: RowId | None


class ForgetAnswer(Answer):
    """How many memories and observations were deleted."""

    forgotten: int


@router.get("")
async def memories(
    request: RequestDep,
    scope: ScopeQuery = None,
    session: SessionQuery = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: AfterRow = None,
) -> MemoryPage:
    """Memories of one scope, the newest first."""
    if session is not None:
        request.require_session(session)
    found = await request.client.memories.list(
        scope, session=session, limit=limit, session_prefixes=request.caller.prefixes, after=after
    )
    return MemoryPage(
        memories=tuple(_memory_item(row) for row in found),
        next=found[-1].row if len(found) == limit else None,
        cells_away=cells_away(found),
    )


@router.delete("/{memory_id}")
async def forget(memory_id: RowInPath, request: RequestDep) -> ChangeAnswer:
    """Delete one memory for good. 404 where the caller has none under this id."""
    if not await request.client.memories.forget(memory_id, session_prefixes=request.caller.prefixes):
        raise NotFound("no memory of the caller's")
    return ChangeAnswer(changed=True)


@router.delete("")
async def forget_all(request: RequestDep, scope: ScopeQuery = None, session: SessionQuery = None) -> ForgetAnswer:
    """Delete all memories of one scope, and what the learner observed there, for good. 404 where there are none."""
    if session is not None:
        request.require_session(session)
    forgotten = await request.client.memories.forget_all(
        scope, session=session, session_prefixes=request.caller.prefixes
    )
    if not forgotten:
        raise NotFound("no memory of the caller's")
    return ForgetAnswer(forgotten=forgotten)


def _memory_item(row: MemoryRow) -> MemoryItem:
    fields = asdict(row)
    del fields["last_turn_id"]  # it may be of a session that is not the caller's
    return MemoryItem(id=fields.pop("row"), **fields)
