"""Builds side by side, and what moves turns from one to the other. They are the deployment's: each needs `*`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from brainq.contracts.build import BuildChange, Versions
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.rest.bodies import Body

MAX_BUILD_CHARS = 64
router = APIRouter(prefix="/v1/versions", tags=["fleet"])
BuildName = Annotated[str, Field(min_length=1, max_length=MAX_BUILD_CHARS)]


class RampBody(Body):
    """Of all sessions `share` per cent begin their turns on `build`; 0 ends the ramp.

    other   the build of the others; needed where there are three
    """

    build: BuildName
    share: float = Field(ge=0, le=100, allow_inf_nan=False)
    other: BuildName | None = None


class ReleaseBody(Body):
    """What is pinned to `build` goes on with the brains of the same names of the build `to`."""

    build: BuildName
    to: BuildName


@router.get("")
async def versions(request: RequestDep) -> Versions:
    """The builds that have workers or turns, and which of them may go; of all cells."""
    request.require_session(None)
    return await request.client.versions()


@router.post("/ramp")
async def ramp(body: RampBody, request: RequestDep) -> BuildChange:
    """Let a share of all sessions begin their turns on a build. Workers learn of it within 5 s."""
    request.require_session(None)
    return await request.client.ramp_build(body.build, body.share, body.other)


@router.post("/release")
async def release(body: ReleaseBody, request: RequestDep) -> BuildChange:
    """Have what is pinned to a build go on with another one. 404 for a build that never had workers."""
    request.require_session(None)
    return await request.client.release_build(body.build, body.to)
