"""The due times of a schedule, in the terms of Celery beat, and with its parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery.schedules import BaseSchedule, ParseException, crontab, schedule

from brainq.errors import InvalidInput

MINUTE_MS = 60_000
MIN_INTERVAL_S = 10.0  # a sweeper looks every few seconds
MAX_DAYS_AHEAD = 366 * 9  # 29 February comes within eight years, except from 2096 to 2104


class _Field(NamedTuple):
    """A field of a crontab: its values, and the names that they may have."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.most - self.least + 1

    def has(self, value: str) -> bool:
        """Return whether `value` is one of its numbers, or a name by its first three letters as Celery reads it."""
        return self.least <= int(value) <= self.most if value.isdigit() else value[:3].lower() in self.names


FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_VALUE = r"[0-9]+|[a-zA-Z]+"
_PART = re.compile(rf"(?:\*|(?P<first>{_VALUE})(?:-(?P<last>{_VALUE}))?)(?:/(?P<step>[0-9]+))?")


def read_timing(when: object) -> str:
    """Return `every SECONDS` or `cron M H DOM MON DOW` for a value of `app.conf.beat_schedule`, or for a crontab's
    text.

    Raises InvalidInput.
    """
    match when:
        case crontab():
            # The order of a crontab; Celery itself pickles these.
            minute, hour, day_of_week, day_of_month, month = when.__reduce__()[1][:5]
            fields = (minute, hour, day_of_month, month, day_of_week)
            return _read_crontab(" ".join(map(_field_text, fields)))
        case schedule():
            return _read_interval(when.run_every)
        case BaseSchedule():
            raise InvalidInput("when", f"{type(when).__name__} is not supported; use a crontab or an interval")
        case timedelta() | int() | float():
            return _read_interval(when)
        case str():
            return _read_crontab(when)
        case _:
            raise InvalidInput(
                "when",
                "use celery's crontab or schedule, a timedelta, seconds, or a text such as '*/5 9-17 * * mon-fri', "
                f"not {type(when).__name__}",
            )


def read_zone(name: str) -> ZoneInfo:
    """Return the time zone. Raises InvalidInput for a name that is not an IANA time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidInput("zone", f"{name!r} is not a time zone; write one such as Europe/Berlin, or UTC") from None


def next_ms(timing: str, zone: str, start_ms: int, after_ms: int) -> int | None:
    """Return the first due time after `after_ms`, or None if there is none.

    A crontab follows the local time of its zone. If the clock is put forward, a time that is skipped is due when the
    clock has passed it. If it is put back, a time that comes twice is due the first time; a crontab for every hour is
    due both times.
    """
    kind, _, rest = timing.partition(" ")
    if kind == "once":
        return start_ms if start_ms > after_ms else None
    if kind == "every":
        step_ms = round(float(rest) * 1000)
        return start_ms if after_ms < start_ms else start_ms + ((after_ms - start_ms) // step_ms + 1) * step_ms
    named = _parse_fields(rest)
    walk = _minutes if len(named.hour) == 24 else _times_of_day
    return next(walk(named, read_zone(zone), after_ms), None)


def _minutes(named: crontab, zone: ZoneInfo, after_ms: int) -> Iterator[int]:
    """Yield the minutes of a crontab that runs every hour, in the order in which they pass, whatever the local clock
    shows."""
    at_ms = (after_ms // MINUTE_MS + 1) * MINUTE_MS
    last_ms = at_ms + MAX_DAYS_AHEAD * 86_400_000
    while at_ms < last_ms:
        wall = datetime.fromtimestamp(at_ms / 1000, zone)
        if not _is_on_day(named, wall.date()):
            # Continue at midnight, or at the first hour after it that exists.
            midnight = datetime(wall.year, wall.month, wall.day, tzinfo=zone) + timedelta(days=1)
            at_ms = max(at_ms + MINUTE_MS, _wall_ms(midnight))
            continue
        if wall.minute in named.minute:
            yield at_ms
        at_ms += MINUTE_MS


def _times_of_day(named: crontab, zone: ZoneInfo, after_ms: int) -> Iterator[int]:
    # Begin with the day before: if the clock was put forward over midnight, the last times of that day are due today.
    first = datetime.fromtimestamp(after_ms / 1000, zone).date() - timedelta(days=1)
    for days in range(MAX_DAYS_AHEAD):
        day = first + timedelta(days=days)
        if not _is_on_day(named, day):
            continue
        due = {
            _wall_ms(datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone))
            for hour in named.hour
            for minute in named.minute
        }
        yield from sorted(at_ms for at_ms in due if at_ms > after_ms)


def _is_on_day(named: crontab, day: date) -> bool:
    # Celery's rule, which differs from cron's: a day must match both its date and its weekday.
    return (
        day.month in named.month_of_year and day.day in named.day_of_month and day.isoweekday() % 7 in named.day_of_week
    )


def _wall_ms(at: datetime) -> int:
    """Return a local time in ms.

    A time that the clock skips (fold 0) is moved behind the gap by the length of the gap.
    """
    return round(at.astimezone(UTC).timestamp() * 1000)


def _read_interval(span: timedelta | float) -> str:
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if not MIN_INTERVAL_S <= seconds <= 366 * 86_400:
        raise InvalidInput("when", f"an interval must be between 10 seconds and 366 days, not {seconds:g} s")
    return f"every {seconds:.3f}".rstrip("0").rstrip(".")


def _read_crontab(text: str) -> str:
    fields = text.split()
    if len(fields) != 5:
        raise InvalidInput(
            "when", f"{text!r} has {len(fields)} fields; a crontab has five: minute hour day-of-month month day-of-week"
        )
    text = " ".join(fields)
    for field, value in zip(FIELDS, fields, strict=True):
        _check_field(field, value, text)
    _parse_fields(text)
    return f"cron {text}"


def _parse_fields(text: str) -> crontab:
    minute, hour, day_of_month, month, day_of_week = text.split()
    try:
        return crontab(minute, hour, day_of_week, day_of_month, month)
    except (ParseException, ValueError) as error:
        raise InvalidInput("when", f"{text!r} is not a crontab: {error}") from None


def _check_field(field: _Field, value: str, text: str) -> None:
    """Raise InvalidInput for syntax of other crontabs that Celery's lacks or reads differently."""
    for part in value.split(","):
        found = _PART.fullmatch(part)
        if found is None or (found["step"] and found["first"] and not found["last"]):
            problem = f"{part!r} is not supported; write *, a value, a range a-b, a list a,b, or a step */n or a-b/n"
        elif found["step"] and not 1 <= int(found["step"]) < field.size:
            problem = (
                f"a step must be from 1 to {field.size - 1}, not {found['step']}; give a longer interval in seconds"
            )
        elif wrong := [one for one in (found["first"], found["last"]) if one and not field.has(one)]:
            names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
            problem = f"{wrong[0]!r} is not one of {field.least} to {field.most}{names}"
        else:
            continue
        raise InvalidInput("when", f"the {field.name} of {text!r}: {problem}")


def _field_text(value: Any) -> str:
    if isinstance(value, str | int):
        return str(value).replace(" ", "")
    return ",".join(str(each) for each in sorted(value))
