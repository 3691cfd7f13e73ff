"""The deployment: its brains, what the caller may do, health and metrics."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response

from brainq.access import Verb
from brainq.brain.brains import describe_brains
from brainq.contracts.brain import BrainDescription
from brainq.gateway.edge.dependencies import GatewayDep, PrincipalDep
from brainq.gateway.rest.bodies import Answer

# The brains that a turn may name, and what the caller may do.


class BrainList(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainDescription, ...]


class CallerInfo(Answer):
    """Who asks: by what name it decides, in the sessions of which prefixes (`*`: all), and with which verbs."""

    name: str
    sessions: tuple[str, ...]
    verbs: tuple[Verb, ...]


brains_router = APIRouter(tags=["brains"])


@brains_router.get("/v1/brains")
async def brains(here: GatewayDep, by: PrincipalDep) -> BrainList:
    """The deployment's brains, the default one first."""
    return BrainList(brains=describe_brains(here.brains))


@brains_router.get("/v1/caller")
async def caller(by: PrincipalDep) -> CallerInfo:
    """What the caller may do, so that an interface offers no more."""
    found = by.caller
    return CallerInfo(name=found.name, sessions=found.sessions, verbs=tuple(sorted(found.verbs)))


# Whether the gateway runs, and whether it could do anything.


class Health(Answer):
    status: Literal["ok"] = "ok"


health_router = APIRouter(tags=["health"])


@health_router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health()


@health_router.get("/readyz")
async def readyz(here: GatewayDep) -> Health:
    """Redis and SQL answer, too, and there is a token; 503 when not, or the gateway stops. Looked up once a second."""
    here.streams.require_running()
    await here.readiness.get()
    return Health()


# `GET /metrics`: the fleet's metrics, for Prometheus.

metrics_router = APIRouter(tags=["metrics"])

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@metrics_router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def metrics(here: GatewayDep, by: PrincipalDep) -> Response:
    """The metrics of the whole fleet in Prometheus' text format; read once a second. They are of no one session: the
    caller's must be all (`*`). Also while Redis or SQL is away: `brainq_up` says so."""
    by.require(None)
    return Response(await here.metrics.get(), media_type=CONTENT_TYPE)
