"""Schedules: turns that begin at a time, once or repeatedly."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from brainq.contracts.base import Wire

OnRunning = Literal["skip", "queue"]
"""What happens to a run while the previous one still runs. `skip` omits it. `queue` lets its turn wait for its session,
as any turn does."""
Missed = Literal["once", "skip"]
"""What happens to runs that could not begin in time. `once` makes up for the first of them, `skip` for none."""


class ScheduleRow(Wire):
    """A schedule in SQL. Times are in ms since 1970.

    timing: `once`, `every SECONDS`, or `cron M H DOM MON DOW`.
    session_id: may contain {date} and {time}, which are filled from the due time in its zone.
    request: the fields of the TurnRequest beside ids and session.
    start_ms: the first due time, from which intervals count.
    next_ms: None if there is no further run.
    """

    schedule_id: str
    name: str
    timing: str
    zone: str
    session_id: str
    request: dict[str, Any]
    on_running: OnRunning
    missed: Missed
    paused: bool
    start_ms: int
    next_ms: int | None
    last_due_ms: int | None = None
    last_turn_id: str = ""
    note: str = ""


class Schedule(Wire):
    """A schedule for its owner.

    when: `at` a time, `every 300 s`, or the five fields of a crontab.
    next_at: when it runs next, or would run if it were not paused. None if it ran its last time.
    last_turn_id: the turn of its newest run.
    note: why the newest due time began no turn, or which earlier ones were missed. "" if all began.
    """

    name: str
    when: str
    zone: str
    session_id: str
    user_message: str
    on_running: OnRunning
    missed: Missed
    paused: bool
    next_at: datetime | None
    last_due_at: datetime | None
    last_turn_id: str
    note: str
