"""The brains that a turn may name, and what the caller may do."""

from __future__ import annotations

from fastapi import APIRouter

from brainq.access import Verb
from brainq.brains_seen import brains_seen
from brainq.contracts.brain_seen import BrainSeen
from brainq.http.bodies.base import Answer
from brainq.http.gateway import By, Here


class BrainsSeen(Answer):
    """The deployment's brains, the default one first."""

    brains: tuple[BrainSeen, ...]


class CallerSeen(Answer):
    """Who asks: by what name it decides, in the sessions of which prefixes (`*`: all), and with which verbs."""

    name: str
    sessions: tuple[str, ...]
    verbs: tuple[Verb, ...]


router = APIRouter(tags=["brains"])


@router.get("/v1/brains")
async def brains(here: Here, by: By) -> BrainsSeen:
    """The deployment's brains, the default one first."""
    return BrainsSeen(brains=brains_seen(here.brains))


@router.get("/v1/caller")
async def caller(by: By) -> CallerSeen:
    """What the caller may do, so that an interface offers no more."""
    found = by.caller
    return CallerSeen(name=found.name, sessions=found.sessions, verbs=tuple(sorted(found.verbs)))
