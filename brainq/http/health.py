"""Whether the gateway runs, and whether it could do anything."""

from __future__ import annotations

from fastapi import APIRouter

from brainq.errors import TurnNotFound
from brainq.http.bodies import Health
from brainq.http.gateway import Here

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz")
async def readyz(here: Here) -> Health:
    """Redis and SQL answer, too; 503 when one does not, or the gateway stops."""
    here.streams.require_running()
    await here.client.ping()
    try:
        await here.client.handle("readyz")
    except TurnNotFound:  # which SQL had to be asked for
        pass
    return Health()
