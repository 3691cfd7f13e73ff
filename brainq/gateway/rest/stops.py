"""Stops: what operators have paused or forbidden by name. A tenant's caller stops only what is its tenant's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from brainq.client.checks import MAX_REASON_CHARS
from brainq.contracts.stop import MAX_STOP_S, Stop, StopKind, StopMode, checked_stop
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import GatewayRequest
from brainq.gateway.rest.bodies import Answer, Body, ChangeAnswer
from brainq.gateway.rest.turn_control import MAX_BY_CHARS, decider_name

MAX_STOP_NAME_CHARS = 200
router = APIRouter(prefix="/v1/stops", tags=["stops"])
StopName = Annotated[str, Path(min_length=1, max_length=MAX_STOP_NAME_CHARS)]


class StopBody(Body):
    """What is stopped, and how.

    tenant      only of this tenant's turns; a caller that has not all sessions names its own
    mode        `pause`: what meets it waits; `forbid`: it is refused
    by          the person who stops it, beside the caller
    ends_in_s   then it is lifted by itself
    """

    kind: StopKind
    name: str = Field(min_length=1, max_length=MAX_STOP_NAME_CHARS)
    tenant: str = Field(default="", max_length=MAX_STOP_NAME_CHARS)
    mode: StopMode = "pause"
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    by: str = Field(default="", max_length=MAX_BY_CHARS)
    ends_in_s: float | None = Field(default=None, gt=0, le=MAX_STOP_S, allow_inf_nan=False)


class StopList(Answer):
    """Those that the caller's turns may meet, by kind and name."""

    stops: tuple[Stop, ...]


@router.get("")
async def stops(request: RequestDep) -> StopList:
    """What is stopped now, with who did it and why: of all tenants, and of the caller's own."""
    found = await request.client.stops()
    return StopList(stops=tuple(stop for stop in found if not _scope(stop) or request.may_access(_scope(stop))))


@router.post("")
async def stop(body: StopBody, request: RequestDep) -> Stop:
    """Pause or forbid something by name, for every worker at once. The same name again takes the first one's place."""
    _require_own(request, checked_stop(body.kind, body.name, body.tenant))
    fields = body.model_dump(exclude={"kind", "name", "by"})
    return await request.client.stop(body.kind, body.name, by=decider_name(request.caller, body.by), **fields)


@router.delete("/{kind}/{stopped:path}")
async def lift(
    kind: StopKind,
    stopped: StopName,
    request: RequestDep,
    tenant: Annotated[str, Query(max_length=MAX_STOP_NAME_CHARS)] = "",
) -> ChangeAnswer:
    """Let go on what waits for it. 404 where it does not stand."""
    _require_own(request, checked_stop(kind, stopped, tenant))
    if not await request.client.lift(kind, stopped, tenant=tenant):
        raise NotFound("nothing of this name is stopped")
    return ChangeAnswer(changed=True)


def _scope(stop: Stop) -> str:
    """The tenant whose turns alone meet it; "" where those of all do."""
    return stop.name if stop.kind == "tenant" else stop.tenant


def _require_own(request: GatewayRequest, stop: Stop) -> None:
    """What all tenants' turns meet belongs to no single session, so it needs `*`."""
    if _scope(stop):
        request.require_session(_scope(stop))
    elif not request.may_access(None):
        raise RequestRejected(
            "forbidden",
            "turns of all tenants meet it, so it needs all sessions (`*`); name your tenant to stop it for that alone",
        )
