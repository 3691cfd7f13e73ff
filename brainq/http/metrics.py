"""`GET /metrics`: the fleet's metrics, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response

from brainq.http.gateway import By, Here

router = APIRouter(tags=["metrics"])

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(here: Here, by: By) -> Response:
    """The metrics of the whole fleet in Prometheus' text format; read once a second. They are of no one session: the
    caller's must be all (`*`). Also while Redis or SQL is away: `brainq_up` says so."""
    by.require(None)
    return Response(await here.metrics.get(), media_type=CONTENT_TYPE)
