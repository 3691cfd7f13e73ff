"""Schedules: turns that begin at a time. One is the caller's if its name and its session are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.contracts.schedule import Schedule
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.request import ID, GatewayDep, GatewayRequest, RequestDep
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, ChangeAnswer, Limit
from brainq.gateway.rest.submission import (
    ScheduleBody,
    SchedulePage,
    ScheduleStatus,
    require_may_submit,
    submit_options,
)

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


async def own_schedule(name: Annotated[str, Path(pattern=ID)], request: RequestDep) -> Schedule:
    """A schedule of the caller's own."""
    request.require_session(name)
    found = await request.client.find_schedule(name)
    request.require_session(found.session_id)
    return found


ScheduleDep = Annotated[Schedule, Depends(own_schedule)]


@router.post("")
async def put(body: ScheduleBody, request: RequestDep) -> ScheduleStatus:
    """Begin turns at a time, once or repeatedly. A request with the same name and
    content changes nothing; with other content it replaces the schedule of this name.

    Its turns may have the options that a submit of the same caller may have: `model`, `provider`, `system_prompt`,
    `skill_context`, `cwd`, `limits` and `options` need the verb `configure`, and what `on_busy` does to a live turn
    needs `steer`.
    """
    request.require_session(body.name)
    require_may_submit(request, body)
    if (body.when is None) is (body.at is None):
        raise InvalidInput("when", "give one of `when` and `at`")
    await _require_own_name(request, body.name)
    made = await request.client.schedule(
        body.name,
        body.session_id,
        body.user_message,
        **body.model_dump(include={"when", "at", "zone", "on_running", "missed"}),
        **submit_options(body),
    )
    return _schedule_status(made)


@router.get("")
async def schedules(
    request: RequestDep,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[str, Query(pattern=f"^$|{ID}", description="`next` of the page at hand.")] = "",
) -> SchedulePage:
    """Schedules of the caller's own, by name."""
    own = request.caller.prefixes
    found = await request.client.schedules(limit, own, own, after=after)
    return SchedulePage(schedules=found, next=found[-1].name if len(found) == limit else None)


@router.get("/{name}")
async def look(own: ScheduleDep) -> Schedule:
    """One schedule: its next run, its turns' message and options, and its last turn."""
    return own


@router.post("/{name}/pause")
async def pause(own: ScheduleDep, gateway: GatewayDep) -> ScheduleStatus:
    """Begin nothing of it until it is resumed. Doing it again changes nothing."""
    return _schedule_status(await gateway.client.pause_schedule(own.name))


@router.post("/{name}/resume")
async def resume(own: ScheduleDep, gateway: GatewayDep) -> ScheduleStatus:
    """Go on with its next run; what was due while it was paused is left out."""
    return _schedule_status(await gateway.client.resume_schedule(own.name))


@router.delete("/{name}")
async def remove(own: ScheduleDep, gateway: GatewayDep) -> ChangeAnswer:
    """Forget it; turns that it has begun go on. 404 where there is none."""
    return ChangeAnswer(changed=await gateway.client.remove_schedule(own.name))


async def _require_own_name(request: GatewayRequest, name: str) -> None:
    """Raise NotFound where a schedule of this name begins turns in a session that is not the caller's."""
    try:
        known = await request.client.find_schedule(name)
    except NotFound:
        return
    request.require_session(known.session_id)


def _schedule_status(made: Schedule) -> ScheduleStatus:
    return ScheduleStatus(name=made.name, paused=made.paused, next_at=made.next_at)
