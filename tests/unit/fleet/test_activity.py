"""The last hour, minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from brainq.contracts.rows import RecentTurn
from brainq.fleet.snapshot import MAX_RECENT_TURNS, MINUTES, fleet_activity

NOW = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)


def turn(ago_s: float, took_s: float | None = None, state: str = "completed", cost: float | None = 0.5) -> RecentTurn:
    accepted = NOW - timedelta(seconds=ago_s)
    ended = None if took_s is None else accepted + timedelta(seconds=took_s)
    return RecentTurn("accepted" if ended is None else state, accepted, ended, cost)


def test_each_minute_has_what_was_accepted_and_what_ended_in_it() -> None:
    turns = [turn(10), turn(30, 5), turn(130, 100, "failed", None), turn(3_590, 1), turn(4_000, 3_990)]
    turns += [RecentTurn("rejected", NOW, NOW, None)]
    found = fleet_activity(turns, NOW)
    assert (len(found.minutes), found.is_whole) == (MINUTES, True)
    last, before, first = found.minutes[-1], found.minutes[-3], found.minutes[0]
    assert (last.accepted, last.ended, last.failed, last.cost_usd) == (3, 3, 1, 1.0)
    assert last.p95_s == 3_990
    assert (before.accepted, before.ended, before.p95_s) == (1, 0, None)
    assert (first.accepted, first.ended) == (1, 1)
    assert sum(minute.accepted for minute in found.minutes) == 5, "what is older is left out"


def test_it_says_when_there_were_more_than_it_looked_at() -> None:
    assert fleet_activity([turn(1)] * MAX_RECENT_TURNS, NOW).is_whole is False


def test_the_ninety_fifth_of_a_hundred() -> None:
    found = fleet_activity([turn(20, took / 10) for took in range(100)], NOW)
    assert found.minutes[-1].p95_s == 9.5
