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
    approval_id: Annotated[str, Path(pattern=CALL_ID)], gateway: GatewayDep, principal: PrincipalDep
) -> Approval:
    """An approval of the caller's own. Its turn is looked up first: that takes equally long for another tenant's."""
    turn_id, _ = split_call_id(approval_id)
    principal.require_session((await gateway.client.handle(turn_id)).session_id)
    return await gateway.client.approval(approval_id)


ApprovalDep = Annotated[Approval, Depends(own_approval)]


@router.get("/approvals")
async def approvals(
    gateway: GatewayDep,
    principal: PrincipalDep,
    session: Annotated[str | None, Query(pattern=ID)] = None,
    state: Annotated[str, Query(pattern="^(pending|approved|denied|expired|void|all)$")] = "pending",
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[
        str | None, Query(max_length=200, description="The `next` of the page at hand, its last approval.")
    ] = None,
) -> ApprovalPage:
    """Calls that people are, or were, asked to approve, the newest first."""
    if session is not None:
        principal.require_session(session)
    found = await gateway.client.approvals(session, state, limit, principal.caller.prefixes, after=after)
    return ApprovalPage(approvals=found, next=found[-1].id if len(found) == limit else None)


@router.get("/approvals/{approval_id}")
async def approval(found: ApprovalDep) -> Approval:
    """One approval."""
    return found


@router.post("/approvals/{approval_id}/approve", responses=problem_responses(409))
async def approve(
    found: ApprovalDep, gateway: GatewayDep, principal: PrincipalDep, body: ApproveBody | None = None
) -> Approval:
    """Let the call run. Doing it again changes nothing."""
    wanted = body or ApproveBody()
    return await gateway.client.approve(found.id, by=decider_name(principal, wanted.by), args_hash=wanted.args_hash)


@router.post("/approvals/{approval_id}/deny", responses=problem_responses(409))
async def deny(
    found: ApprovalDep, gateway: GatewayDep, principal: PrincipalDep, body: DenyBody | None = None
) -> Approval:
    """Refuse the call; its turn goes on."""
    wanted = body or DenyBody()
    return await gateway.client.deny(found.id, wanted.reason, by=decider_name(principal, wanted.by))


@router.post("/approvals/{approval_id}/edit", responses=problem_responses(409))
async def edit(found: ApprovalDep, gateway: GatewayDep, principal: PrincipalDep, body: EditBody) -> Approval:
    """Let the call run with other arguments, which have to fit the tool's schema."""
    return await gateway.client.edit(
        found.id, body.arguments, by=decider_name(principal, body.by), args_hash=body.args_hash
    )


@router.post("/outside/{token:path}")
async def outside(
    token: Annotated[str, Path(min_length=1, max_length=500)],
    gateway: GatewayDep,
    principal: PrincipalDep,
    body: OutsideResult | OutsideError,
) -> ResultReceipt:
    """Give the result that a call waits for, or report that there is none. It is accepted once."""
    # A token of brainq's names its session. A tool's own token does not, so it needs access to all sessions.
    ref = parse_outside_token(token)
    if not principal.may_access(None if ref is None else ref.session_id):
        raise TokenRefused("no call of yours waits for this token")
    if isinstance(body, OutsideResult):
        taken = await gateway.client.complete_call(token, result_with_files(body), partial=body.partial)
    else:
        taken = await gateway.client.fail_call(token, body.error)
    return ResultReceipt(taken=taken)


def decider_name(principal: Principal, person: str) -> str:
    """The decider for the record: the caller, and the person that it names."""
    if principal.caller is LOCAL_CALLER:
        return person
    return f"{principal.caller.name}: {person}" if person else principal.caller.name
