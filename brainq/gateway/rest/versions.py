"""The builds that run side by side, and moving turns between them. Every route needs all sessions (`*`)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from brainq.contracts.build import BuildChange, Versions
from brainq.gateway.edge.access import FleetDep
from brainq.gateway.rest.bodies import Body

MAX_BUILD_CHARS = 64
router = APIRouter(prefix="/v1/versions", tags=["fleet"])
BuildName = Annotated[str, Field(min_length=1, max_length=MAX_BUILD_CHARS)]


class RampBody(Body):
    """The share of sessions whose turns begin on a build."""

    build: BuildName
    share: float = Field(ge=0, le=100, allow_inf_nan=False, description="Per cent of all sessions; 0 ends the ramp.")
    other: BuildName | None = Field(None, description="The build of the other sessions; required if there are three.")


class ReleaseBody(Body):
    """A move of pinned turns to the brains with the same names in another build."""

    build: BuildName
    to: BuildName


@router.get("")
async def versions(request: FleetDep) -> Versions:
    """List the builds that have workers or turns in any cell, and whether each can be shut down."""
    return await request.client.versions()


@router.post("/ramp")
async def ramp(body: RampBody, request: FleetDep) -> BuildChange:
    """Make a share of all sessions begin their turns on a build. Workers follow within 5 s."""
    return await request.client.ramp_build(body.build, body.share, body.other)


@router.post("/release")
async def release(body: ReleaseBody, request: FleetDep) -> BuildChange:
    """Move the turns that are pinned to a build to another one. 404 if the build never had workers."""
    return await request.client.release_build(body.build, body.to)
