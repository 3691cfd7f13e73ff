"""The deployment: its brains, what the caller may do, health and metrics."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response

from brainq.access import Verb
from brainq.brain.brains import describe_brains
from brainq.contracts.brain import BrainDescription
from brainq.gateway.edge.request import GatewayDep, RequestDep
from brainq.gateway.rest.bodies import Answer


class BrainList(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainDescription, ...]


class CallerInfo(Answer):
    """The caller: its name, the prefixes of its sessions (`*`: all), and its verbs."""

    name: str
    sessions: tuple[str, ...]
    verbs: tuple[Verb, ...]


brains_router = APIRouter(tags=["brains"])


@brains_router.get("/v1/brains")
async def brains(request: RequestDep) -> BrainList:
    """The deployment's brains, the default one first."""
    return BrainList(brains=describe_brains(request.gateway.brains))


@brains_router.get("/v1/caller")
async def caller(request: RequestDep) -> CallerInfo:
    """What the caller may do, so that an interface offers no more."""
    found = request.caller
    return CallerInfo(name=found.name, sessions=found.sessions, verbs=tuple(sorted(found.verbs)))


class Health(Answer):
    status: Literal["ok"] = "ok"


health_router = APIRouter(tags=["health"])


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


metrics_router = APIRouter(tags=["metrics"])
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@metrics_router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def metrics(request: RequestDep) -> Response:
    """The metrics of the whole fleet in Prometheus' text format; read once a second. They belong to no single
    session, so they need `*`. While Redis or SQL is unavailable, `brainq_up` is 0."""
    request.require_session(None)
    return Response(await request.gateway.metrics.get(), media_type=CONTENT_TYPE)
