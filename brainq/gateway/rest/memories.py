"""Memories that brains keep across turns. A caller sees the ones that were first learned in its own sessions."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from brainq.client.memories import MAX_SCOPE_CHARS
from brainq.contracts.cell import RowId
from brainq.contracts.memory import MemoryKind
from brainq.contracts.rows import MemoryRow
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import ID
from brainq.gateway.rest import bodies

router = APIRouter(prefix="/v1/memories", tags=["memories"])
ScopeQuery = Annotated[str | None, Query(max_length=MAX_SCOPE_CHARS, description="Send either this or `session`.")]
SessionQuery = Annotated[str | None, Query(pattern=ID, description="Selects the scope that brains give this session.")]


class MemoryItem(bodies.Answer):
    """A memory. It was first learned in `session_id` and `turn_id`, and last observed at `updated_at`."""

    id: RowId
    scope: str
    kind: MemoryKind
    text: str
    times_seen: int
    session_id: str
    turn_id: str
    created_at: datetime
    updated_at: datetime


class MemoryPage(bodies.ListPage):
    """Memories, newest first."""

    memories: tuple[MemoryItem, ...]
    next: bodies.NextRow


class ForgetAnswer(bodies.Answer):
    """The number of memories and observations that were deleted."""

    forgotten: int


@router.get("")
async def memories(
    request: RequestDep,
    scope: ScopeQuery = None,
    session: SessionQuery = None,
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: bodies.AfterRow = None,
) -> MemoryPage:
    """List the memories of one scope, newest first."""
    if session is not None:
        request.require_session(session)
    found = await request.client.memories.list(
        scope, session=session, limit=limit, session_prefixes=request.caller.prefixes, after=after
    )
    return MemoryPage(memories=tuple(map(_memory_item, found)), **bodies.page_end(found, limit, lambda row: row.row))


@router.delete("/{memory_id}")
async def forget(memory_id: bodies.RowInPath, request: RequestDep) -> bodies.ChangeAnswer:
    """Delete one memory permanently. 404 if the caller has none with this id."""
    if not await request.client.memories.forget(memory_id, session_prefixes=request.caller.prefixes):
        raise NotFound("no memory of the caller's")
    return bodies.ChangeAnswer(changed=True)


@router.delete("")
async def forget_all(request: RequestDep, scope: ScopeQuery = None, session: SessionQuery = None) -> ForgetAnswer:
    """Delete all memories and learner observations of one scope permanently. 404 if there are none."""
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
    del fields["last_turn_id"]  # that turn may belong to another caller's session
    return MemoryItem(id=fields.pop("row"), **fields)
