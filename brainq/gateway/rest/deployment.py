"""The deployment: its brains, what the caller may do, the fleet, webhook deliveries, health and metrics."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Response

from brainq.access import Verb
from brainq.brain.brains import describe_brains
from brainq.cells.cells import cells_away
from brainq.contracts.brain import BrainDescription
from brainq.contracts.cell import RowId
from brainq.contracts.fleet import CellsState, Fleet, FleetActivity, FleetScale
from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.errors import NotFound
from brainq.gateway.edge.access import GatewayDep, RequestDep
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, AfterRow, Answer, ChangeAnswer, Limit, ListPage, RowInPath

router = APIRouter()
health_router = APIRouter(tags=["health"])
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BrainList(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainDescription, ...]


class CallerInfo(Answer):
    """The caller: its name, the prefixes of its sessions (`*`: all), and its verbs."""

    name: str
    sessions: tuple[str, ...]
    verbs: tuple[Verb, ...]


@router.get("/v1/brains", tags=["brains"])
async def brains(request: RequestDep) -> BrainList:
    """The deployment's brains, the default one first."""
    return BrainList(brains=describe_brains(request.gateway.brains))


@router.get("/v1/caller", tags=["brains"])
async def caller(request: RequestDep) -> CallerInfo:
    """What the caller may do, so that an interface offers no more."""
    found = request.caller
    return CallerInfo(name=found.name, sessions=found.sessions, verbs=tuple(sorted(found.verbs)))


class Health(Answer):
    status: Literal["ok"] = "ok"


@health_router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health()


@health_router.get("/readyz")
async def readyz(gateway: GatewayDep) -> Health:
    """Redis and SQL answer, too, and there is a token; 503 when not, or the gateway stops. Looked up once a second."""
    gateway.streams.require_running()
    await gateway.readiness.get()
    return Health()


@router.get(
    "/metrics",
    tags=["metrics"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: RequestDep) -> Response:
    """The metrics of the whole fleet in Prometheus' text format; read once a second. They belong to no single
    session, so they need `*`. While Redis or SQL is unavailable, `brainq_up` is 0."""
    request.require_session(None)
    return Response(await request.gateway.metrics.get(), media_type=CONTENT_TYPE)


@router.get("/v1/fleet", tags=["fleet"])
async def fleet(request: RequestDep) -> Fleet:
    """What runs turns, at this moment. It belongs to no single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.fleet()


@router.get("/v1/fleet/activity", tags=["fleet"])
async def activity(request: RequestDep) -> FleetActivity:
    """What happened in each minute of the last hour. It belongs to no single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.activity()


@router.get("/v1/cells", tags=["fleet"])
async def cells(request: RequestDep) -> CellsState:
    """Each cell: whether it answers, its tenants and turns; and tenants under way to another one. It belongs to no
    single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.cells()


Workers = Annotated[int | None, Query(ge=0, le=1000, description="In place of BRAINQ_SCALE_MIN, BRAINQ_SCALE_MAX.")]


@router.get("/v1/scale", tags=["fleet"])
async def scale(
    request: RequestDep,
    pool: Annotated[Literal["coordinator", "parallel", "serial", "finalizer"] | None, Query()] = None,
    least: Annotated[Workers, Query(alias="min")] = None,
    most: Annotated[Workers, Query(alias="max")] = None,
    build: Annotated[str | None, Query(min_length=1, max_length=64, description="Only this build's workers.")] = None,
) -> FleetScale:
    """How many workers each pool wants, for an autoscaler; with `pool`, `wanted` is that pool's. It belongs to no
    single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.scale(pool, least=least, most=most, build=build)


class Delivery(Answer):
    """A webhook's message. Of its URL only the host is shown, for the path may hold a secret."""

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


class DeliveryPage(ListPage):
    """The newest first. `next`, given as `after`, is the page behind this one; null: this is the last."""

    deliveries: tuple[Delivery, ...]
    next: RowId | None


@router.get("/v1/webhooks/deliveries", tags=["webhooks"])
async def deliveries(
    request: RequestDep,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: AfterRow = None,
) -> DeliveryPage:
    """Messages to be sent (pending), accepted (done) or given up (dead), the newest first."""
    found = await request.client.deliveries(state, limit, request.caller.prefixes, after)
    return DeliveryPage(
        deliveries=tuple(_delivery(row) for row in found),
        next=found[-1].row if len(found) == limit else None,
        cells_away=cells_away(found),
    )


@router.post("/v1/webhooks/deliveries/{delivery_id}/retry", tags=["webhooks"])
async def retry(delivery_id: RowInPath, request: RequestDep) -> ChangeAnswer:
    """Send a dead message again, as if it were new. 404 where none of the caller's own has this id."""
    if not await request.client.send_again(delivery_id, request.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return ChangeAnswer(changed=True)


def _delivery(row: DeliveryRow) -> Delivery:
    fields = asdict(row)
    return Delivery(id=fields.pop("row"), host=urlsplit(fields.pop("url")).netloc, **fields)
