"""ApprovalPage, and results from outside: what calls wait for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.contracts.approval import Approval
from brainq.contracts.ids import split_call_id
from brainq.contracts.outside_token import ref_of_token
from brainq.errors import TokenRefused
from brainq.http.bodies.people import (
    ApprovalPage,
    ApproveBody,
    DenyBody,
    EditBody,
    OutsideError,
    OutsideResult,
    TakenAnswer,
    result_of,
)
from brainq.http.gateway import CALL_ID, ID, Asker, By, Here
from brainq.http.paging import LISTED, Limit
from brainq.http.problems import documented
from brainq.http.who import LOCAL

router = APIRouter(prefix="/v1", tags=["approvals"])


async def asked(approval_id: Annotated[str, Path(pattern=CALL_ID)], here: Here, by: By) -> Approval:
    """An approval of the caller's own. Its turn is asked for first: that takes as long for another's as for none."""
    turn_id, _ = split_call_id(approval_id)
    by.require((await here.client.handle(turn_id)).session_id)
    return await here.client.approval(approval_id)


Asked = Annotated[Approval, Depends(asked)]


@router.get("/approvals")
async def approvals(
    here: Here,
    by: By,
    session: Annotated[str | None, Query(pattern=ID)] = None,
    state: Annotated[str, Query(pattern="^(pending|approved|denied|expired|void|all)$")] = "pending",
    limit: Limit = LISTED,
    after: Annotated[
        str | None, Query(max_length=200, description="The `next` of the page at hand, its last approval.")
    ] = None,
) -> ApprovalPage:
    """Calls that people are, or were, asked to approve, the newest first."""
    if session is not None:
        by.require(session)
    found = await here.client.approvals(session, state, limit, by.caller.prefixes, after=after)
    return ApprovalPage(approvals=found, next=found[-1].id if len(found) == limit else None)


@router.get("/approvals/{approval_id}")
async def approval(found: Asked) -> Approval:
    """One approval, as it stands."""
    return found


@router.post("/approvals/{approval_id}/approve", responses=documented(409))
async def approve(found: Asked, here: Here, by: By, body: ApproveBody | None = None) -> Approval:
    """Let the call run. Doing it again changes nothing."""
    wanted = body or ApproveBody()
    return await here.client.approve(found.id, by=decider(by, wanted.by), args_hash=wanted.args_hash)


@router.post("/approvals/{approval_id}/deny", responses=documented(409))
async def deny(found: Asked, here: Here, by: By, body: DenyBody | None = None) -> Approval:
    """Refuse the call; its turn goes on."""
    wanted = body or DenyBody()
    return await here.client.deny(found.id, wanted.reason, by=decider(by, wanted.by))


@router.post("/approvals/{approval_id}/edit", responses=documented(409))
async def edit(found: Asked, here: Here, by: By, body: EditBody) -> Approval:
    """Let the call run with other arguments, which have to fit the tool's schema."""
    return await here.client.edit(found.id, body.arguments, by=decider(by, body.by), args_hash=body.args_hash)


@router.post("/outside/{token:path}")
async def outside(
    token: Annotated[str, Path(min_length=1, max_length=500)],
    here: Here,
    by: By,
    body: OutsideResult | OutsideError,
) -> TakenAnswer:
    """Give a call that waits for a result from outside its result, or say that there is none. It is taken once."""
    # A token of brainq's names its session. One of the tool's own does not, so only who may do all may use it.
    ref = ref_of_token(token)
    if not by.may(None if ref is None else ref.session_id):
        raise TokenRefused("no call of yours waits for this token")
    if isinstance(body, OutsideResult):
        taken = await here.client.complete_call(token, result_of(body), partial=body.partial)
    else:
        taken = await here.client.fail_call(token, body.error)
    return TakenAnswer(taken=taken)


def decider(by: Asker, person: str) -> str:
    """Who decided, for the record: always the caller, and whom it names."""
    if by.caller is LOCAL:
        return person
    return f"{by.caller.name}: {person}" if person else by.caller.name
