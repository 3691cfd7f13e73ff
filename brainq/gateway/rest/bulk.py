"""Bulk operations: one verb for every turn that matches some filters. One request starts it, others follow it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from brainq.app.access import Verb
from brainq.client.bulk_run import read_where
from brainq.client.checks import MAX_REASON_CHARS
from brainq.contracts.bulk import MAX_BULK_TURNS, MAX_RATE, MAX_WHERE_CHARS, BulkReport, BulkVerb
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import ID, GatewayRequest
from brainq.gateway.rest.bodies import Body, ChangeAnswer
from brainq.gateway.rest.turn_control import ByField, decider_name

router = APIRouter(prefix="/v1/bulk", tags=["bulk"])
BulkId = Annotated[str, Path(pattern=ID)]
NEEDED: dict[BulkVerb, Verb] = {
    "cancel": Verb.STEER,
    "approve": Verb.DECIDE,
    "deny": Verb.DECIDE,
    "retry": Verb.OPERATE,
    "resubmit": Verb.SUBMIT,
}
"""The verb that a bulk needs in addition to `operate`: the one that the same act on a single turn needs."""


class BulkBody(Body):
    """A verb, and the turns to apply it to."""

    verb: BulkVerb
    where: str = Field(
        min_length=1,
        max_length=MAX_WHERE_CHARS,
        description="Filters of `GET /v1/turns`, such as `brain=shop state=parked tenant=acme older=2h`.",
    )
    dry_run: bool = Field(False, description="Only count the turns.")
    rate: float = Field(20.0, gt=0, le=MAX_RATE, allow_inf_nan=False, description="Turns per second.")
    most: int | None = Field(None, ge=0, le=MAX_BULK_TURNS, description="The maximum number of turns, newest first.")
    reason: str = Field("", max_length=MAX_REASON_CHARS)
    by: str = ByField


@router.post("", status_code=202)
async def start(body: BulkBody, request: RequestDep, response: Response) -> BulkReport:
    """Start a bulk, which runs on in this process. `Location` has the address of its report."""
    request.require_verb(NEEDED[body.verb])
    filters = read_where(body.where)
    for named in (filters.get("session"), *(filters.get("session_prefixes") or ())):
        if named is not None:
            request.require_session(named)
    report = await request.client.start_bulk(
        body.verb,
        body.where,
        **body.model_dump(exclude={"verb", "where", "by"}),
        by=decider_name(request.caller, body.by),
        session_prefixes=request.caller.prefixes,
        may_configure=Verb.CONFIGURE in request.caller.verbs,
    )
    response.headers["Location"] = f"/v1/bulk/{report.id}"
    return report


@router.get("/{bulk_id}")
async def report(bulk_id: BulkId, request: RequestDep) -> BulkReport:
    """Report the progress as of a second ago, or the outcome. Reports are kept for a week."""
    return await _own(bulk_id, request)


@router.delete("/{bulk_id}")
async def stop(bulk_id: BulkId, request: RequestDep) -> ChangeAnswer:
    """Stop a bulk before its next turn. `changed` is false if it has already ended."""
    await _own(bulk_id, request)
    return ChangeAnswer(changed=await request.client.stop_bulk(bulk_id))


async def _own(bulk_id: str, request: GatewayRequest) -> BulkReport:
    """Return the report of a bulk over the caller's own sessions. Raises NotFound for any other."""
    found = await request.client.bulk_report(bulk_id)
    scopes = (None,) if found.session_prefixes is None else found.session_prefixes
    if not all(request.may_access(scope) for scope in scopes):
        raise NotFound("not the caller's")
    return found
