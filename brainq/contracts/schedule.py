"""Schedules: turns that begin at a time, once or again and again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from brainq.contracts.base import Wire

OnRunning = Literal["skip", "queue"]
"""What a run does whose last one still runs: it is left out, or its turn waits for its session as any turn does."""
Missed = Literal["once", "skip"]
"""What becomes of runs that nobody could begin in their time: the first of them is made up for, or none is."""


class ScheduleRow(Wire):
    """A schedule as SQL keeps it; instants in ms since 1970.

    timing        `once`, `every SECONDS`, or `cron M H DOM MON DOW`
    session_id    may hold {date} and {time}: those of the due instant in its zone
    request       the fields of the TurnRequest beside ids and session
    start_ms      the first due instant; intervals count from it
    next_ms       None: there is none any more
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
    """A schedule as its owner sees it.

    when           `at` a time, `every 300 s`, or the five fields of a crontab
    next_at        None: it ran its last time; while it is paused when it would run
    last_turn_id   the turn of its newest run
    note           why the newest due instant began no turn, or which earlier ones were missed, until there is something
                   newer to say; "" where all began
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
