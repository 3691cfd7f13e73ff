"""Approvals, and results from outside for calls that wait for them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.contracts.call import parse_outside_token
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval
from brainq.errors import TokenRefused
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.dependencies import CALL_ID, ID, GatewayDep, Principal, PrincipalDep
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, Limit
from brainq.gateway.rest.turn_control import (
    ApprovalPage,
    ApproveBody,
    DenyBody,
    EditBody,
    OutsideError,
    OutsideResult,
    ResultReceipt,
    result_with_files,
)

router = APIRouter(prefix="/v1", tags=["approvals"])


async def own_approval(
    approval_id: Annotated[str, Path(pattern=CALL_ID)], here: GatewayDep, by: PrincipalDep
) -> Approval:
    """An approval of the caller's own. Its turn is asked for first: that takes as long for another's as for none."""
    turn_id, _ = split_call_id(approval_id)
    by.require((await here.client.handle(turn_id)).session_id)
    return await here.client.approval(approval_id)


ApprovalDep = Annotated[Approval, Depends(own_approval)]


@router.get("/approvals")
async def approvals(
    here: GatewayDep,
    by: PrincipalDep,
    session: Annotated[str | None, Query(pattern=ID)] = None,
    state: Annotated[str, Query(pattern="^(pending|approved|denied|expired|void|all)$")] = "pending",
    limit: Limit = DEFAULT_LIST_PAGE,
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
async def approval(found: ApprovalDep) -> Approval:
    """One approval, as it stands."""
    return found


@router.post("/approvals/{approval_id}/approve", responses=problem_responses(409))
async def approve(found: ApprovalDep, here: GatewayDep, by: PrincipalDep, body: ApproveBody | None = None) -> Approval:
    """Let the call run. Doing it again changes nothing."""
    wanted = body or ApproveBody()
    return await here.client.approve(found.id, by=decider_name(by, wanted.by), args_hash=wanted.args_hash)


@router.post("/approvals/{approval_id}/deny", responses=problem_responses(409))
async def deny(found: ApprovalDep, here: GatewayDep, by: PrincipalDep, body: DenyBody | None = None) -> Approval:
    """Refuse the call; its turn goes on."""
    wanted = body or DenyBody()
    return await here.client.deny(found.id, wanted.reason, by=decider_name(by, wanted.by))


@router.post("/approvals/{approval_id}/edit", responses=problem_responses(409))
async def edit(found: ApprovalDep, here: GatewayDep, by: PrincipalDep, body: EditBody) -> Approval:
    """Let the call run with other arguments, which have to fit the tool's schema."""
    return await here.client.edit(found.id, body.arguments, by=decider_name(by, body.by), args_hash=body.args_hash)


@router.post("/outside/{token:path}")
async def outside(
    token: Annotated[str, Path(min_length=1, max_length=500)],
    here: GatewayDep,
    by: PrincipalDep,
    body: OutsideResult | OutsideError,
) -> ResultReceipt:
    """Give a call that waits for a result from outside its result, or say that there is none. It is taken once."""
    # A token of brainq's names its session. One of the tool's own does not, so only who may do all may use it.
    ref = parse_outside_token(token)
    if not by.may(None if ref is None else ref.session_id):
        raise TokenRefused("no call of yours waits for this token")
    if isinstance(body, OutsideResult):
        taken = await here.client.complete_call(token, result_with_files(body), partial=body.partial)
    else:
        taken = await here.client.fail_call(token, body.error)
    return ResultReceipt(taken=taken)


def decider_name(by: Principal, person: str) -> str:
    """Who decided, for the record: always the caller, and whom it names."""
    if by.caller is LOCAL_CALLER:
        return person
    return f"{by.caller.name}: {person}" if person else by.caller.name
