"""The brains that a turn may name."""

from __future__ import annotations

from fastapi import APIRouter

from brainq.brains_seen import brains_seen
from brainq.contracts.brain_seen import BrainSeen
from brainq.http.bodies.base import Answer
from brainq.http.gateway import By, Here


class BrainsSeen(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainSeen, ...]


router = APIRouter(tags=["brains"])


@router.get("/v1/brains")
async def brains(here: Here, by: By) -> BrainsSeen:
    """The deployment's brains, the default one first."""
    return BrainsSeen(brains=brains_seen(here.brains))
