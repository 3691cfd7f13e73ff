"""Schedules of turns. A schedule is the caller's if both its name and its session are."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.access import GatewayDep, RequestDep
from brainq.gateway.edge.request import ID, GatewayRequest
from brainq.gateway.rest import bodies

SESSION_PATTERN = r"^([A-Za-z0-9]|\{date\}|\{time\})([A-Za-z0-9._:@+=-]|\{date\}|\{time\})*$"
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_AT_REMEDY = "write a text such as 2031-01-05T09:00:00+01:00"
router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


def _read_instant(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError(_AT_REMEDY)
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(_AT_REMEDY) from None
    if at.tzinfo is None:
        raise ValueError(f"it needs a time zone; {_AT_REMEDY}")
    return at


def _check_interval(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError("write a crontab, such as `*/5 9-17 * * mon-fri`, or an interval in seconds")
    if not isinstance(value, str | None) and not value > 0:
        raise ValueError("the interval must be above 0 seconds")
    return value


class ScheduleBody(bodies.TurnBody):
    """A schedule of turns. Give one of `when`, `at` and `in_s`."""

    name: str = Field(pattern=ID, description="Begins with the tenant's prefix. An existing schedule is replaced.")
    session_id: str = Field(
        pattern=SESSION_PATTERN,
        max_length=MAX_ID_LENGTH,
        description="{date} and {time} stand for each due time in `zone`.",
    )
    when: Annotated[Annotated[str, Field(max_length=200)] | Seconds | None, BeforeValidator(_check_interval)] = Field(
        None, description="Repeatedly: a crontab, such as `*/5 9-17 * * mon-fri`, or an interval in seconds."
    )
    at: Annotated[AwareDatetime, BeforeValidator(_read_instant, json_schema_input_type=str)] | None = Field(
        None, description="Once, at this time."
    )
    in_s: float | None = Field(None, ge=0, allow_inf_nan=False, description="Once, in this many seconds.")
    zone: str = Field("UTC", max_length=100)
    on_running: OnRunning = "skip"
    missed: Missed = "once"


class ScheduleStatus(bodies.Answer):
    """A schedule that was set, paused or resumed. `next_at` is null if no run is left."""

    name: str
    paused: bool
    next_at: datetime | None


class SchedulePage(bodies.ListPage):
    """Schedules by name."""

    schedules: tuple[Schedule, ...]
    next: bodies.NextName


async def own_schedule(name: Annotated[str, Path(pattern=ID)], request: RequestDep) -> Schedule:
    """Return one of the caller's own schedules. Raises NotFound for any other."""
    request.require_session(name)
    found = await request.client.find_schedule(name)
    request.require_session(found.session_id)
    return found


ScheduleDep = Annotated[Schedule, Depends(own_schedule)]


@router.post("")
async def put(body: ScheduleBody, request: RequestDep) -> ScheduleStatus:
    """Schedule turns, once or repeatedly. A schedule of the same name is replaced; equal content changes nothing.

    The options of the turns need the same verbs as for a submit: `model`, `provider`, `system_prompt`,
    `skill_context`, `cwd`, `limits` and `options` need `configure`, and an `on_busy` that affects a live turn needs
    `steer`.
    """
    request.require_session(body.name)
    bodies.require_may_submit(request, body.session_id, body)
    if sum(choice is not None for choice in (body.when, body.at, body.in_s)) != 1:
        raise InvalidInput("when", "send one of `when`, `at` and `in_s`")
    await _require_own_name(request, body.name)
    made = await request.client.schedule(
        body.name,
        body.session_id,
        body.user_message,
        **body.model_dump(include={"when", "at", "in_s", "zone", "on_running", "missed"}),
        **bodies.submit_options(body),
    )
    return _schedule_status(made)


@router.get("")
async def schedules(
    request: RequestDep,
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: Annotated[str, Query(pattern=f"^$|{ID}", description="`next` of the previous page.")] = "",
) -> SchedulePage:
    """List the caller's own schedules by name."""
    own = request.caller.prefixes
    found = await request.client.schedules(limit, own, own, after=after)
    return SchedulePage(schedules=found, **bodies.page_end(found, limit, lambda schedule: schedule.name))


@router.get("/{name}")
async def look(own: ScheduleDep) -> Schedule:
    """Show a schedule: its next run, the message and options of its turns, and its last turn."""
    return own


@router.post("/{name}/pause")
async def pause(own: ScheduleDep, gateway: GatewayDep) -> ScheduleStatus:
    """Pause a schedule. Idempotent."""
    return _schedule_status(await gateway.client.pause_schedule(own.name))


@router.post("/{name}/resume")
async def resume(own: ScheduleDep, gateway: GatewayDep) -> ScheduleStatus:
    """Resume a schedule with its next run; runs that were due during the pause are skipped."""
    return _schedule_status(await gateway.client.resume_schedule(own.name))


@router.delete("/{name}")
async def remove(own: ScheduleDep, gateway: GatewayDep) -> bodies.ChangeAnswer:
    """Delete a schedule; turns that it has begun continue. 404 if there is none."""
    return bodies.ChangeAnswer(changed=await gateway.client.remove_schedule(own.name))


async def _require_own_name(request: GatewayRequest, name: str) -> None:
    """Raise NotFound if a schedule of this name begins turns in a session that is not the caller's."""
    try:
        known = await request.client.find_schedule(name)
    except NotFound:
        return
    request.require_session(known.session_id)


def _schedule_status(made: Schedule) -> ScheduleStatus:
    return ScheduleStatus(name=made.name, paused=made.paused, next_at=made.next_at)
