"""The brains that a turn may name."""

from __future__ import annotations

from fastapi import APIRouter

from brainq.brains_seen import brains_seen
from brainq.http.bodies import BrainsSeen
from brainq.http.gateway import By, Here

router = APIRouter(tags=["brains"])


@router.get("/v1/brains")
async def brains(here: Here, by: By) -> BrainsSeen:
    """The deployment's brains, the default one first."""
    return BrainsSeen(brains=brains_seen(here.brains))
