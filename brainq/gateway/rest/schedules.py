"""Schedules: turns that begin at a time. One is the caller's if its name and its session are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.contracts.schedule import Schedule
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.dependencies import ID, Gateway, GatewayDep, Principal, PrincipalDep
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, ChangeAnswer, Limit
from brainq.gateway.rest.submission import (
    ScheduleBody,
    SchedulePage,
    ScheduleStatus,
    require_may_submit,
    submit_options,
)

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


async def own_schedule(name: Annotated[str, Path(pattern=ID)], here: GatewayDep, by: PrincipalDep) -> Schedule:
    """A schedule of the caller's own."""
    by.require(name)
    found = await here.client.find_schedule(name)
    by.require(found.session_id)
    return found


ScheduleDep = Annotated[Schedule, Depends(own_schedule)]


@router.post("")
async def put(body: ScheduleBody, here: GatewayDep, by: PrincipalDep) -> ScheduleStatus:
    """Have a turn begin at a time, once or again and again. The name is what makes sending it again safe: saying the
    same again changes nothing, and other content sets the schedule of this name anew.

    What its turns may say is what a submit of the same caller may: `model`, `provider`, `system_prompt`,
    `skill_context`, `cwd`, `limits` and `options` need the verb `configure`, and what `on_busy` does to a live turn
    needs `steer`.
    """
    by.require(body.name)
    require_may_submit(by, body)
    if (body.when is None) is (body.at is None):
        raise InvalidInput("when", "give one of `when` and `at`")
    await _require_own_name(here, by, body.name)
    made = await here.client.schedule(
        body.name,
        body.session_id,
        body.user_message,
        when=body.when,
        at=body.at,
        zone=body.zone,
        on_running=body.on_running,
        missed=body.missed,
        **submit_options(body),
    )
    return _schedule_status(made)


@router.get("")
async def schedules(
    here: GatewayDep,
    by: PrincipalDep,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[str, Query(pattern=f"^$|{ID}", description="`next` of the page at hand.")] = "",
) -> SchedulePage:
    """Schedules of the caller's own, by name."""
    own = by.caller.prefixes
    found = await here.client.schedules(limit, own, own, after=after)
    return SchedulePage(schedules=found, next=found[-1].name if len(found) == limit else None)


@router.get("/{name}")
async def look(own: ScheduleDep) -> Schedule:
    """One schedule: when it runs next, what its turns are asked, and which turn was the last."""
    return own


@router.post("/{name}/pause")
async def pause(own: ScheduleDep, here: GatewayDep) -> ScheduleStatus:
    """Begin nothing of it until it is resumed. Doing it again changes nothing."""
    return _schedule_status(await here.client.pause_schedule(own.name))


@router.post("/{name}/resume")
async def resume(own: ScheduleDep, here: GatewayDep) -> ScheduleStatus:
    """Go on with its next run; what was due while it was paused is left out."""
    return _schedule_status(await here.client.resume_schedule(own.name))


@router.delete("/{name}")
async def remove(own: ScheduleDep, here: GatewayDep) -> ChangeAnswer:
    """Forget it; turns that it has begun go on. 404 where there is none."""
    return ChangeAnswer(changed=await here.client.remove_schedule(own.name))


async def _require_own_name(here: Gateway, by: Principal, name: str) -> None:
    """Raise NotFound where a schedule of this name begins turns in a session that is not the caller's."""
    try:
        known = await here.client.find_schedule(name)
    except NotFound:
        return
    by.require(known.session_id)


def _schedule_status(made: Schedule) -> ScheduleStatus:
    return ScheduleStatus(name=made.name, paused=made.paused, next_at=made.next_at)
