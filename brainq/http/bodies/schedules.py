"""What a schedule is set by, and how schedules are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field

from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.http.bodies.base import Answer
from brainq.http.bodies.submit import TurnBody
from brainq.http.gateway import ID

SESSIONS = r"^([A-Za-z0-9]|\{date\}|\{time\})([A-Za-z0-9._:@+=-]|\{date\}|\{time\})*$"


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


_AT = "write a text such as 2031-01-05T09:00:00+01:00"


def _instant(given: object) -> datetime:
    if not isinstance(given, str):
        raise ValueError(_AT)
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(_AT) from None
    if at.tzinfo is None:
        raise ValueError(f"it needs a time zone; {_AT}")
    return at


def _spelled(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, str | int | float | None):
        raise ValueError("write a crontab, such as `*/5 9-17 * * mon-fri`, or a span in seconds")
    if not isinstance(given, str | None) and not given > 0:
        raise ValueError("a span in seconds is above 0")
    return given


class ScheduleBody(TurnBody):
    """Turns that begin at a time; give one of `when` and `at`.

    name         begins with its tenant's prefix, as its session does; the same name again sets the schedule anew
    session_id   {date} and {time} in it are those of each due instant in `zone`
    when         repeated: a crontab's five fields, such as `*/5 9-17 * * mon-fri`, or a span in seconds
    at           once
    """

    name: str = Field(pattern=ID)
    session_id: str = Field(pattern=SESSIONS, max_length=MAX_ID_LENGTH)
    when: Annotated[Annotated[str, Field(max_length=200)] | Seconds | None, BeforeValidator(_spelled)] = None
    at: Annotated[AwareDatetime, BeforeValidator(_instant, json_schema_input_type=str)] | None = None
    zone: str = Field(default="UTC", max_length=100)
    on_running: OnRunning = "skip"
    missed: Missed = "once"


class Scheduled(Answer):
    """A schedule that was set, paused or resumed. `next_at` null: it has no run any more."""

    name: str
    paused: bool
    next_at: datetime | None


class SchedulePage(Answer):
    """By name. `next`, given as `after`, is the page behind this one; null: this is the last."""

    schedules: tuple[Schedule, ...]
    next: str | None
