"""Bulks: one verb for every turn that some words describe, begun by a request and looked at by others."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from brainq.access import Verb
from brainq.client.bulk_run import read_where
from brainq.client.checks import MAX_REASON_CHARS
from brainq.contracts.bulk import MAX_BULK_TURNS, MAX_RATE, MAX_WHERE_CHARS, BulkReport, BulkVerb
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import ID, GatewayRequest
from brainq.gateway.rest.bodies import Body, ChangeAnswer
from brainq.gateway.rest.turn_control import MAX_BY_CHARS, decider_name

router = APIRouter(prefix="/v1/bulk", tags=["bulk"])
BulkId = Annotated[str, Path(pattern=ID)]
NEEDED: dict[BulkVerb, Verb] = {
    "cancel": Verb.STEER,
    "approve": Verb.DECIDE,
    "deny": Verb.DECIDE,
    "retry": Verb.OPERATE,
    "resubmit": Verb.SUBMIT,
}
"""What a bulk needs beside `operate`: what the same needs for one turn."""


class BulkBody(Body):
    """What is to be done, and with which turns.

    where     the filters of `GET /v1/turns` in words: `brain=shop state=parked tenant=acme older=2h`
    dry_run   only count
    rate      turns a second
    most      of so many turns at most, the newest first
    by        the person who does it, beside the caller
    """

    verb: BulkVerb
    where: str = Field(min_length=1, max_length=MAX_WHERE_CHARS)
    dry_run: bool = False
    rate: float = Field(default=20.0, gt=0, le=MAX_RATE, allow_inf_nan=False)
    most: int | None = Field(default=None, ge=0, le=MAX_BULK_TURNS)
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    by: str = Field(default="", max_length=MAX_BY_CHARS)


@router.post("", status_code=202)
async def start(body: BulkBody, request: RequestDep, response: Response) -> BulkReport:
    """Begin it, and answer at once: it goes on in this process. `Location` is where its report is."""
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
    """How far it is, as of a second ago, or what came of it. Kept for a week."""
    return await _own(bulk_id, request)


@router.delete("/{bulk_id}")
async def stop(bulk_id: BulkId, request: RequestDep) -> ChangeAnswer:
    """Have it stop before its next turn. `changed` is false where it is over."""
    await _own(bulk_id, request)
    return ChangeAnswer(changed=await request.client.stop_bulk(bulk_id))


async def _own(bulk_id: str, request: GatewayRequest) -> BulkReport:
    """One about sessions that are the caller's own. Raises NotFound, for another's too."""
    found = await request.client.bulk_report(bulk_id)
    scopes = (None,) if found.session_prefixes is None else found.session_prefixes
    if not all(request.may_access(scope) for scope in scopes):
        raise NotFound("not the caller's")
    return found
