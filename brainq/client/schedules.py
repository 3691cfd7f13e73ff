"""Schedules, as a client makes and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from brainq.contracts.ids import PREFIX_BOUNDARY, check_id, new_turn_id, tenant_of
from brainq.contracts.schedule import Missed, OnRunning, Schedule, ScheduleRow
from brainq.errors import InvalidInput, ScheduleNotFound, SchedulesFull
from brainq.people.admission import read_request
from brainq.upkeep.schedules import scheduled_request
from brainq.wiring import Wiring

NOT_SCHEDULED = ("turn_id", "request_key", "readiness", "attachments")
"""What a submit may say that belongs to one turn, not to each of many."""
MAX_AHEAD_S = 3660 * 86_400
LIMIT_SETTING = "BRAINQ_MAX_SCHEDULES_A_TENANT"


def schedule_row(
    wiring: Wiring,
    name: str,
    session_id: str,
    user_message: str,
    when: object,
    at: datetime | None,
    in_s: float | None,
    zone: str,
    on_running: OnRunning,
    missed: Missed,
    options: Mapping[str, Any],
) -> ScheduleRow:
    """Raises InvalidInput naming the field."""
    from brainq.broker.timetable import next_ms, read_timing, read_zone  # Celery takes a third of a second

    check_id("name", name)
    read_zone(zone)
    if sum(choice is not None for choice in (when, at, in_s)) != 1:
        raise InvalidInput("when", "give one of `when`, `at` and `in_s`")
    if on_running not in ("skip", "queue"):
        raise InvalidInput("on_running", f"{on_running!r} is not known; use skip or queue")
    if missed not in ("once", "skip"):
        raise InvalidInput("missed", f"{missed!r} is not known; use once or skip")
    for field in NOT_SCHEDULED:
        if options.get(field) is not None:
            raise InvalidInput(field, "it belongs to one turn; leave it out of a schedule")
    if options.get("on_busy") is not None:
        raise InvalidInput("on_busy", "a schedule says it by on_running: skip or queue")
    now_ms = redis_now_ms(wiring)
    timing, start_ms = "once", now_ms
    if when is not None:
        timing = read_timing(when)
        first_ms = next_ms(timing, zone, now_ms, now_ms)
        if first_ms is None:
            raise InvalidInput("when", f"{timing.partition(' ')[2]!r} never comes")
        start_ms = first_ms
    elif at is not None:
        start_ms = _instant_ms(at, now_ms)
    elif in_s is not None:
        if isinstance(in_s, bool) or not isinstance(cast("object", in_s), int | float) or not 0 <= in_s <= MAX_AHEAD_S:
            raise InvalidInput("in_s", f"{in_s!r} must be a number of seconds from 0 to ten years")
        start_ms += round(in_s * 1000)
    request = read_request({**options, "session_id": "x", "turn_id": new_turn_id(), "user_message": user_message})
    stored = request.model_dump(mode="json", exclude_defaults=True, exclude={"turn_id", "session_id", "request_key"})
    row = ScheduleRow(
        schedule_id=new_turn_id(),
        name=name,
        timing=timing,
        zone=zone,
        session_id=session_id,
        request=stored,
        on_running=on_running,
        missed=missed,
        paused=False,
        start_ms=start_ms,
        next_ms=start_ms,
    )
    wiring.people.intake.check_request(scheduled_request(row, start_ms))  # what no brain could do is refused here
    return row


def _instant_ms(at: object, now_ms: int) -> int:
    if not isinstance(at, datetime):
        raise InvalidInput("at", f"it must be a datetime with a time zone, got {type(at).__name__}")
    if at.tzinfo is None:
        raise InvalidInput("at", "it needs a time zone: datetime(..., tzinfo=ZoneInfo('Europe/Berlin'))")
    try:
        at_ms = round(at.timestamp() * 1000)
    except (OverflowError, ValueError):
        at_ms = -1
    if not 0 <= at_ms <= now_ms + MAX_AHEAD_S * 1000:
        raise InvalidInput("at", "it is from 1970 to ten years from now")
    return at_ms


def set_schedule(wiring: Wiring, row: ScheduleRow) -> Schedule:
    """Write it down; one that says the same as the schedule of its name changes nothing. Raises SchedulesFull."""
    rows = wiring.store.schedules
    known = rows.get(row.name)
    compared = {"timing", "zone", "session_id", "request", "on_running", "missed"}
    same = known is not None and known.model_dump(include=compared) == row.model_dump(include=compared)
    if known is None or not same or (row.timing == "once" and known.start_ms != row.start_ms):
        limit = wiring.settings.max_schedules_a_tenant
        if not rows.put(row, limit):
            raise SchedulesFull(tenant_of(row.name).removesuffix(PREFIX_BOUNDARY), LIMIT_SETTING, limit)
    return schedule_from_row(get_schedule(wiring, row.name))


def resume_schedule(wiring: Wiring, name: str) -> Schedule:
    """What was due while it was paused is not made up for."""
    from brainq.broker.timetable import next_ms

    row = get_schedule(wiring, name)
    wiring.store.schedules.resume(name, next_ms(row.timing, row.zone, row.start_ms, redis_now_ms(wiring)))
    return schedule_from_row(get_schedule(wiring, name))


def get_schedule(wiring: Wiring, name: str) -> ScheduleRow:
    """Raises ScheduleNotFound."""
    row = wiring.store.schedules.get(check_id("name", name))
    if row is None:
        raise ScheduleNotFound(f"no schedule {name!r}; `brainq schedule list` shows all")
    return row


def redis_now_ms(wiring: Wiring) -> int:
    seconds, micros = wiring.state.redis.time()
    return seconds * 1000 + micros // 1000


def schedule_from_row(row: ScheduleRow) -> Schedule:
    kind, _, rest = row.timing.partition(" ")
    start = _instant(row.start_ms)
    when = {"once": f"at {start:%Y-%m-%d %H:%M:%S} UTC", "every": f"every {rest} s"}.get(kind, rest)
    return Schedule(
        name=row.name,
        when=when,
        zone=row.zone,
        session_id=row.session_id,
        user_message=str(row.request.get("user_message", "")),
        on_running=row.on_running,
        missed=row.missed,
        paused=row.paused,
        next_at=_instant(row.next_ms),
        last_due_at=_instant(row.last_due_ms),
        last_turn_id=row.last_turn_id,
        note=row.note,
    )


def _instant(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
