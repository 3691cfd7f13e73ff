"""Whether the gateway runs, and whether it could do anything."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from brainq.http.bodies.base import Answer
from brainq.http.gateway import Here


class Health(Answer):
    status: Literal["ok"] = "ok"


router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz")
async def readyz(here: Here) -> Health:
    """Redis and SQL answer, too, and there is a token; 503 when not, or the gateway stops. Looked up once a second."""
    here.streams.require_running()
    await here.readiness.get()
    return Health()
