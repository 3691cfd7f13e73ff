"""Schedules: turns that begin at a time. One is the caller's if its name and its session are."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from brainq.cells.cells import cells_away
from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.access import GatewayDep, RequestDep
from brainq.gateway.edge.request import ID, GatewayRequest
from brainq.gateway.rest.bodies import (
    DEFAULT_LIST_PAGE,
    Answer,
    ChangeAnswer,
    Limit,
    ListPage,
    TurnBody,
    require_may_submit,
    submit_options,
)

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
        raise ValueError("write a crontab, such as `*/5 9-17 * * mon-fri`, or a span in seconds")
    if not isinstance(value, str | None) and not value > 0:
        raise ValueError("a span in seconds is above 0")
    return value


class ScheduleBody(TurnBody):
    """Turns that begin at a time; give one of `when` and `at`.

    name         begins with its tenant's prefix, as its session does; the same name again sets the schedule anew
    session_id   {date} and {time} in it are those of each due instant in `zone`
    when         repeated: a crontab's five fields, such as `*/5 9-17 * * mon-fri`, or a span in seconds
    at           once
    """

    name: str = Field(pattern=ID)
    session_id: str = Field(pattern=SESSION_PATTERN, max_length=MAX_ID_LENGTH)
    when: Annotated[Annotated[str, Field(max_length=200)] | Seconds | None, BeforeValidator(_check_interval)] = None
    at: Annotated[AwareDatetime, BeforeValidator(_read_instant, json_schema_input_type=str)] | None = None
    zone: str = Field(default="UTC", max_length=100)
    on_running: OnRunning = "skip"
    missed: Missed = "once"


class ScheduleStatus(Answer):
    """A schedule that was set, paused or resumed. `next_at` null: it has no run any more."""

    name: str
    paused: bool
    next_at: datetime | None


class SchedulePage(ListPage):
    """By name. `next`, given as `after`, is the page behind this one; null: this is the last."""

    schedules: tuple[Schedule, ...]
    next: str | None


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
    require_may_submit(request, body.session_id, body)
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
    following = found[-1].name if len(found) == limit else None
    return SchedulePage(schedules=found, next=following, cells_away=cells_away(found))


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
