"""When schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab, schedule, solar

from brainq.adapters.celery.schedule_times import next_ms, read_timing, read_zone
from brainq.errors import InvalidInput

BERLIN = "Europe/Berlin"


def ms(*at: int, zone: str = "UTC") -> int:
    year, month, day, hour, minute = at
    return round(datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def following(timing: str, zone: str, after_ms: int, count: int) -> list[str]:
    """The next due instants in UTC."""
    found: list[str] = []
    at_ms: int | None = after_ms
    while len(found) < count:
        assert at_ms is not None
        at_ms = next_ms(timing, zone, after_ms, at_ms)
        assert at_ms is not None
        found.append(f"{datetime.fromtimestamp(at_ms / 1000, UTC):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("when", "timing"),
    [
        (crontab(hour=7, minute=0, day_of_week="mon-fri"), "cron 0 7 * * mon-fri"),
        (crontab(minute="*/15", day_of_month=[1, 15], month_of_year={6, 3}), "cron */15 * 1,15 3,6 *"),
        ("*/5  9-17 * * mon-fri", "cron */5 9-17 * * mon-fri"),
        (timedelta(minutes=30), "every 1800"),
        ("0 0 * Jan-march monday,SUN", "cron 0 0 * Jan-march monday,SUN"),
        ("1-59/2 */23 31 12 6-0", "cron 1-59/2 */23 31 12 6-0"),
        (schedule(90.0), "every 90"),
        (12.5, "every 12.5"),
        (123456.5, "every 123456.5"),
        (timedelta(days=365), "every 31536000"),
    ],
)
def test_what_beat_takes_is_taken(when: object, timing: str) -> None:
    assert read_timing(when) == timing


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("* * * *", "has 4 fields"),
        ("61 * * * *", "the minute of .*: '61' is not one of 0 to 59"),
        ("* * * * someday", "the day of week of .*: 'someday' is not one of 0 to 6, or sun to sat"),
        ("* * * * 7", "the day of week of .*: '7' is not one of 0 to 6"),
        ("0 0 L * *", "the day of month of .*: 'L' is not one of 1 to 31"),
        ("0 0 ? * *", r"the day of month of .*: '\?' is not supported; write \*, a value"),
        ("H * * * *", "the minute of .*: 'H' is not one of 0 to 59"),
        ("5/15 * * * *", "the minute of .*: '5/15' is not supported"),
        ("0 0 * * 5#2", "the day of week of .*: '5#2' is not supported"),
        ("0 0 * mon *", "the month of .*: 'mon' is not one of 1 to 12, or jan to dec"),
        ("5,,6 * * * *", "the minute of .*: '' is not supported"),
        ("*/90 * * * *", "the minute of .*: a step must be from 1 to 59, not 90"),
        ("* 1-5/24 * * *", "the hour of .*: a step must be from 1 to 23, not 24"),
        ("*/0 * * * *", "the minute of .*: a step must be from 1 to 59, not 0"),
        ("@daily", "has 1 fields"),
        ("0 0 30 2 *", "is not a crontab"),
        (5, "an interval must be between 10 seconds"),
        (timedelta(days=-1), "an interval must be between"),
        (object.__new__(solar), "solar is not supported"),
        (None, "not NoneType"),
    ],
)
def test_what_is_none_is_refused(when: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_timing(when)


def test_a_zone_has_to_be_one() -> None:
    assert read_zone(BERLIN).key == BERLIN
    for wrong in ("Middle/Earth", "../../etc/passwd", ""):
        with pytest.raises(InvalidInput, match="not a time zone"):
            read_zone(wrong)


def test_office_hours() -> None:
    friday = ms(2031, 1, 3, 17, 54)
    assert following("cron */5 9-17 * * mon-fri", "UTC", friday, 2) == ["01-03 17:55", "01-06 09:00"]


def test_a_day_has_to_fit_both_its_date_and_its_weekday_as_in_celery() -> None:
    assert following("cron 0 12 13 * fri", "UTC", ms(2031, 1, 1, 0, 0), 1) == ["06-13 12:00"]
    assert following("cron 0 0 29 2 *", "UTC", ms(2097, 1, 1, 0, 0), 1) == ["02-29 00:00"]


def test_it_goes_by_the_clock_on_the_wall_summer_and_winter() -> None:
    assert following("cron 0 7 * * *", BERLIN, ms(2031, 3, 29, 0, 0), 3) == [
        "03-29 06:00",
        "03-30 05:00",
        "03-31 05:00",
    ]


def test_a_time_that_does_not_come_is_due_when_the_clock_has_passed_it() -> None:
    # On 30 March 2031 at 02:00 it is 03:00 in Berlin: 02:30 is 03:30, which is 01:30 UTC.
    assert following("cron 30 2 * * *", BERLIN, ms(2031, 3, 29, 12, 0), 2) == ["03-30 01:30", "03-31 00:30"]
    assert following("cron 30 2,3 * * *", BERLIN, ms(2031, 3, 29, 12, 0), 2) == ["03-30 01:30", "03-31 00:30"]


def test_a_time_that_comes_twice_is_due_the_first_time() -> None:
    # On 26 October 2031 the hour from 02:00 comes twice.
    assert following("cron 30 2 * * *", BERLIN, ms(2031, 10, 25, 12, 0), 2) == ["10-26 00:30", "10-27 01:30"]


def test_a_crontab_of_every_hour_runs_through_both() -> None:
    assert following("cron 30 * * * *", BERLIN, ms(2031, 10, 25, 23, 45), 3) == [
        "10-26 00:30",
        "10-26 01:30",
        "10-26 02:30",
    ]
    assert following("cron 30 * * * *", BERLIN, ms(2031, 3, 30, 0, 0), 2) == ["03-30 00:30", "03-30 01:30"]


def test_each_minute_of_one_weekday_ends_with_it() -> None:
    assert following("cron * * * * sun", BERLIN, ms(2031, 1, 5, 22, 58), 3) == [
        "01-05 22:59",
        "01-11 23:00",
        "01-11 23:01",
    ]


def test_an_interval_counts_from_its_beginning() -> None:
    assert next_ms("every 90", "UTC", 1_000_000, 0) == 1_000_000
    assert next_ms("every 90", "UTC", 1_000_000, 1_000_000) == 1_090_000
    assert next_ms("every 90", "UTC", 1_000_000, 1_300_000) == 1_360_000


def test_once_is_once() -> None:
    assert next_ms("once", "UTC", 1_000, 999) == 1_000
    assert next_ms("once", "UTC", 1_000, 1_000) is None


def test_a_crontab_that_an_earlier_build_took_goes_on() -> None:
    assert following("cron */90 * * * *", "UTC", ms(2031, 1, 9, 7, 0), 1) == ["01-09 08:00"]
