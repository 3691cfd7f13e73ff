"""The audit log of what people and tokens did. A tenant's caller sees what was done to its own sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from brainq.contracts.act import Act
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import TURN_ID
from brainq.gateway.rest.bodies import AFTER, DEFAULT_LIST_PAGE, MAX_NUMBER, NEXT, Answer, Limit

router = APIRouter(prefix="/v1/audit", tags=["stops"])
Word = Annotated[str | None, Query(min_length=1, max_length=200)]


class ActPage(Answer):
    """Acts, newest first."""

    acts: tuple[Act, ...]
    next: Annotated[int | None, NEXT]


@router.get("")
async def audit(
    request: RequestDep,
    limit: Limit = DEFAULT_LIST_PAGE,
    who: Word = None,
    act: Word = None,
    turn: Annotated[str | None, Query(pattern=TURN_ID)] = None,
    after: Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description=AFTER)] = None,
) -> ActPage:
    """List acts: who did what to which turn or session, when and from where. Acts on no session need `*`."""
    found = await request.client.audit(limit, request.caller.prefixes, who=who, act=act, turn=turn, after=after)
    return ActPage(acts=found, next=found[-1].id if len(found) == limit else None)
