"""Memories: what brains remember over turns. One is the caller's if it was first said in a session of the caller's."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query

from brainq.client.memories import MAX_SCOPE_CHARS
from brainq.contracts.rows import MemoryRow
from brainq.errors import NotFound
from brainq.http.bodies.base import Changed
from brainq.http.bodies.memories import Forgotten, KnownMemory, MemoryPage
from brainq.http.gateway import ID, By, Here
from brainq.http.paging import LISTED, Limit

router = APIRouter(prefix="/v1/memories", tags=["memories"])

MOST = 2**53 - 1
Scope = Annotated[
    str | None, Query(max_length=MAX_SCOPE_CHARS, description="Whose memories; this or `session`.")
]
OfSession = Annotated[
    str | None, Query(pattern=ID, description="The scope is that which the brains give this session.")
]


@router.get("")
async def memories(
    here: Here,
    by: By,
    scope: Scope = None,
    session: OfSession = None,
    limit: Limit = LISTED,
    after: Annotated[int | None, Query(ge=1, le=MOST, description="`next` of the page at hand.")] = None,
) -> MemoryPage:
    """Memories of one scope; those that were first said last come first."""
    if session is not None:
        by.require(session)
    found = await here.client.memories.list(
        scope, session=session, limit=limit, session_prefixes=by.caller.prefixes, after=after
    )
    return MemoryPage(
        memories=tuple(_known(row) for row in found), next=found[-1].row if len(found) == limit else None
    )


@router.delete("/{memory_id}")
async def forget(memory_id: Annotated[int, Path(ge=1, le=MOST)], here: Here, by: By) -> Changed:
    """Delete one memory for good. 404 where the caller has none under this id."""
    if not await here.client.memories.forget(memory_id, session_prefixes=by.caller.prefixes):
        raise NotFound("no memory of the caller's")
    return Changed(changed=True)


@router.delete("")
async def forget_all(here: Here, by: By, scope: Scope = None, session: OfSession = None) -> Forgotten:
    """Delete all memories of one scope, and what the learner observed there, for good. 404 where there are none."""
    if session is not None:
        by.require(session)
    forgotten = await here.client.memories.forget_all(
        scope, session=session, session_prefixes=by.caller.prefixes
    )
    if not forgotten:
        raise NotFound("no memory of the caller's")
    return Forgotten(forgotten=forgotten)


def _known(row: MemoryRow) -> KnownMemory:
    told = asdict(row)
    del told["last_turn_id"]  # it may be of a session that is not the caller's
    return KnownMemory(id=told.pop("row"), **told)
