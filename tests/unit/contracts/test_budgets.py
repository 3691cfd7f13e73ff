"""Budgets as they are written, whom they hold, and when their windows begin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from brainq.contracts.budgets import Budget, budgets_for, merge_budgets, parse_budgets, user_of, window_starts


def test_budgets_are_read_as_they_are_written() -> None:
    found = parse_budgets("all day=100; tenant day=5 month=60\ntenant acme: day=20 park; brain b hour=2 refuse;")
    assert [(one.scope, one.per, one.usd, one.at_cap) for one in found] == [
        ("all", "day", 100, "park"),
        ("tenant", "day", 5, "park"),
        ("tenant", "month", 60, "park"),
        ("tenant acme:", "day", 20, "park"),
        ("brain b", "hour", 2, "refuse"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "all",
        "all week=1",
        "all day=x",
        "all day=-1",
        "fleet day=1",
        "tenant acme day=1",
        "all day=1; all day=2",
        "all day=nan",
    ],
)
def test_what_is_no_budget_is_refused_with_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match=r"write entries such as|is given twice"):
        parse_budgets(text)


def test_the_budget_of_one_wins_over_that_of_each() -> None:
    budgets = parse_budgets("all day=100; tenant day=5 month=60; tenant acme: day=20; user day=1; brain other day=1")
    held = [(scope, one.per, one.usd) for scope, one in budgets_for(budgets, "acme:ann:7", "b")]
    assert held == [
        ("all", "day", 100),
        ("tenant acme:", "day", 20),
        ("tenant acme:", "month", 60),
        ("user acme:ann:", "day", 1),
    ]
    assert [scope for scope, _ in budgets_for(budgets, "alone", "other")] == [
        "all",
        "tenant :",
        "tenant :",
        "brain other",
    ]
    assert (user_of("acme:7"), user_of("acme:ann:7")) == (None, "acme:ann:")


def test_what_people_set_wins_over_the_settings() -> None:
    mine = Budget(scope="all", per="day", usd=7)
    assert merge_budgets([mine], parse_budgets("all day=100 hour=1")) == (mine, Budget(scope="all", per="hour", usd=1))


@pytest.mark.parametrize(
    ("per", "zone", "begins"),
    [
        ("hour", "UTC", ["13:00", "14:00", "15:00", "16:00"]),
        ("day", "UTC", ["2026-03-28 00", "2026-03-29 00", "2026-03-30 00", "2026-03-31 00"]),
        ("day", "Europe/Berlin", ["2026-03-27 23", "2026-03-28 23", "2026-03-29 22", "2026-03-30 22"]),
        ("month", "UTC", ["2026-02-01 00", "2026-03-01 00", "2026-04-01 00", "2026-05-01 00"]),
        ("month", "Europe/Berlin", ["2026-01-31 23", "2026-02-28 23", "2026-03-31 22", "2026-04-30 22"]),
    ],
)
def test_windows_begin_by_the_zone(per: str, zone: str, begins: list[str]) -> None:
    at = int(datetime(2026, 3, 29, 14, 30, tzinfo=UTC).timestamp() * 1000)
    starts = window_starts(per, at, zone)  # pyright: ignore[reportArgumentType]
    form = "%H:%M" if per == "hour" else "%Y-%m-%d %H"
    assert [datetime.fromtimestamp(start / 1000, UTC).strftime(form) for start in starts] == begins


def test_a_midnight_that_comes_twice_begins_one_day() -> None:
    """In the Azores the clock goes from one to midnight: in the second hour of that day it is still the same window."""
    times = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC).timestamp() for hour in (0, 1, 5)]
    assert len({window_starts("day", int(at * 1000), "Atlantic/Azores") for at in times}) == 1


def test_a_month_before_january_is_december() -> None:
    at = int(datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000)
    months = [
        datetime.fromtimestamp(start / 1000, UTC).strftime("%Y-%m") for start in window_starts("month", at, "UTC")
    ]
    assert months == ["2025-12", "2026-01", "2026-02", "2026-03"]
