"""The deployment: its brains, the caller's rights, the fleet, webhook deliveries, health and metrics."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Response

from brainq.app.access import Verb
from brainq.contracts.brain import BrainDescription
from brainq.contracts.cell import RowId
from brainq.contracts.fleet import CellsState, Fleet, FleetActivity, FleetScale
from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.engine.brain.brains import describe_brains
from brainq.errors import NotFound
from brainq.gateway.edge.access import FleetDep, GatewayDep, RequestDep
from brainq.gateway.rest import bodies

router = APIRouter()
health_router = APIRouter(tags=["health"])
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BrainList(bodies.Answer):
    """The deployment's brains, default first."""

    brains: tuple[BrainDescription, ...]


class CallerInfo(bodies.Answer):
    """The caller's name, the prefixes of its sessions (`*` for all), and its verbs."""

    name: str
    sessions: tuple[str, ...]
    verbs: tuple[Verb, ...]


@router.get("/v1/brains", tags=["brains"])
async def brains(request: RequestDep) -> BrainList:
    """List the deployment's brains, default first."""
    return BrainList(brains=describe_brains(request.gateway.brains))


@router.get("/v1/caller", tags=["brains"])
async def caller(request: RequestDep) -> CallerInfo:
    """Show what the caller may do, so that an interface can offer exactly that."""
    found = request.caller
    return CallerInfo(name=found.name, sessions=found.sessions, verbs=tuple(sorted(found.verbs)))


class Health(bodies.Answer):
    status: Literal["ok"] = "ok"


@health_router.get("/healthz")
async def healthz() -> Health:
    """Report that the process answers."""
    return Health()


@health_router.get("/readyz")
async def readyz(gateway: GatewayDep) -> Health:
    """Report that Redis and SQL answer and a token exists. 503 if not, or if the gateway is stopping. Checked once a
    second."""
    gateway.streams.require_running()
    await gateway.readiness.get()
    return Health()


@router.get(
    "/metrics",
    tags=["metrics"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: FleetDep) -> Response:
    """Show the metrics of the whole fleet in Prometheus' text format, read once a second. Needs all sessions (`*`).
    While Redis or SQL is unavailable, `brainq_up` is 0."""
    return Response(await request.gateway.metrics.get(), media_type=CONTENT_TYPE)


@router.get("/v1/fleet", tags=["fleet"])
async def fleet(request: FleetDep) -> Fleet:
    """Show the current workers and queues. Needs all sessions (`*`)."""
    return await request.client.fleet()


@router.get("/v1/fleet/activity", tags=["fleet"])
async def activity(request: FleetDep) -> FleetActivity:
    """Show the fleet's activity in each minute of the last hour. Needs all sessions (`*`)."""
    return await request.client.activity()


@router.get("/v1/cells", tags=["fleet"])
async def cells(request: FleetDep) -> CellsState:
    """Show each cell's availability, tenants and turns, and the tenants that are moving between cells. Needs all
    sessions (`*`)."""
    return await request.client.cells()


Workers = Annotated[int | None, Query(ge=0, le=1000, description="Replaces BRAINQ_SCALE_MIN or BRAINQ_SCALE_MAX.")]


@router.get("/v1/scale", tags=["fleet"])
async def scale(
    request: FleetDep,
    pool: Annotated[Literal["coordinator", "parallel", "serial", "finalizer"] | None, Query()] = None,
    least: Annotated[Workers, Query(alias="min")] = None,
    most: Annotated[Workers, Query(alias="max")] = None,
    build: Annotated[str | None, Query(min_length=1, max_length=64, description="Only this build's workers.")] = None,
) -> FleetScale:
    """Show how many workers each pool needs, for an autoscaler. With `pool`, `wanted` is that pool's number. Needs all
    sessions (`*`)."""
    return await request.client.scale(pool, least=least, most=most, build=build)


class Delivery(bodies.Answer):
    """A message to a webhook. Only the host of the URL is shown, because the path may contain a secret."""

    id: RowId
    message_id: str
    host: str
    event: str
    session_id: str
    turn_id: str
    state: DeliveryState
    tries: int
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    error: str | None


class DeliveryPage(bodies.ListPage):
    """Deliveries, newest first."""

    deliveries: tuple[Delivery, ...]
    next: bodies.NextRow


@router.get("/v1/webhooks/deliveries", tags=["webhooks"])
async def deliveries(
    request: RequestDep,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: bodies.AfterRow = None,
) -> DeliveryPage:
    """List messages to webhooks that wait (pending), were accepted (done) or were given up (dead), newest first."""
    found = await request.client.deliveries(state, limit, request.caller.prefixes, after)
    return DeliveryPage(deliveries=tuple(map(_delivery, found)), **bodies.page_end(found, limit, lambda row: row.row))


@router.post("/v1/webhooks/deliveries/{delivery_id}/retry", tags=["webhooks"])
async def retry(delivery_id: bodies.RowInPath, request: RequestDep) -> bodies.ChangeAnswer:
    """Send a dead message again as if it were new. 404 if the caller has none with this id."""
    if not await request.client.send_again(delivery_id, request.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return bodies.ChangeAnswer(changed=True)


def _delivery(row: DeliveryRow) -> Delivery:
    fields = asdict(row)
    return Delivery(id=fields.pop("row"), host=urlsplit(fields.pop("url")).netloc, **fields)
