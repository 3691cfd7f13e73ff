"""Stops: pause or forbid tools, models and the like by name. A tenant's caller can stop only what is its tenant's."""

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
from brainq.gateway.rest.turn_control import ByField, decider_name

MAX_STOP_NAME_CHARS = 200
router = APIRouter(prefix="/v1/stops", tags=["stops"])
StopName = Annotated[str, Path(min_length=1, max_length=MAX_STOP_NAME_CHARS)]


class StopBody(Body):
    """The subject of a stop, and its effect."""

    kind: StopKind
    name: str = Field(min_length=1, max_length=MAX_STOP_NAME_CHARS)
    tenant: str = Field("", max_length=MAX_STOP_NAME_CHARS, description="Limits the stop to this tenant's turns.")
    mode: StopMode = Field("pause", description="`pause`: affected calls wait; `forbid`: they are refused.")
    reason: str = Field("", max_length=MAX_REASON_CHARS)
    by: str = ByField
    ends_in_s: float | None = Field(
        None, gt=0, le=MAX_STOP_S, allow_inf_nan=False, description="The stop is lifted after this many seconds."
    )


class StopList(Answer):
    """The stops that can affect the caller's turns, by kind and name."""

    stops: tuple[Stop, ...]


@router.get("")
async def stops(request: RequestDep) -> StopList:
    """List the stops of all tenants and of the caller's own, each with its author and reason."""
    found = await request.client.stops()
    return StopList(stops=tuple(stop for stop in found if not _scope(stop) or request.may_access(_scope(stop))))


@router.post("")
async def stop(body: StopBody, request: RequestDep) -> Stop:
    """Pause or forbid something by name on every worker. A stop of the same name is replaced."""
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
    """Lift a stop. Work that waits because of it resumes. 404 if there is no such stop."""
    _require_own(request, checked_stop(kind, stopped, tenant))
    if not await request.client.lift(kind, stopped, tenant=tenant):
        raise NotFound("nothing of this name is stopped")
    return ChangeAnswer(changed=True)


def _scope(stop: Stop) -> str:
    """Return the only tenant that the stop affects, or "" if it affects all."""
    return stop.name if stop.kind == "tenant" else stop.tenant


def _require_own(request: GatewayRequest, stop: Stop) -> None:
    """Raise NotFound or RequestRejected if the caller may not stop this. A stop that affects all tenants needs `*`."""
    if _scope(stop):
        request.require_session(_scope(stop))
    elif not request.may_access(None):
        raise RequestRejected(
            "forbidden",
            "this stop affects the turns of all tenants, so it needs all sessions (`*`); name your tenant to limit it",
        )
