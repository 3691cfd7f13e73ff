"""What the fleet did within the last hour, minute by minute. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from brainq.contracts.fleet import FleetActivity, FleetMinute
from brainq.contracts.rows import RecentTurn
from brainq.contracts.status import Ending

MINUTES = 60
LOOKED_AT = 20_000
"""Turns that are read at most, the newest."""
WINDOW = timedelta(minutes=MINUTES)
_FAILED = (Ending.FAILED.value, Ending.TIMED_OUT.value)


def activity_of(turns: Sequence[RecentTurn], now: datetime) -> FleetActivity:
    """`turns` are those that were accepted within WINDOW before `now`, at most LOOKED_AT."""
    accepted = [0] * MINUTES
    ended: list[list[RecentTurn]] = [[] for _ in range(MINUTES)]
    for turn in turns:
        begun = _minute(turn.accepted_at, now)
        if begun is not None:
            accepted[begun] += 1
        over = None if turn.ended_at is None else _minute(turn.ended_at, now)
        if over is not None and turn.state != "rejected":
            ended[over].append(turn)
    minutes = tuple(_told(count, over) for count, over in zip(accepted, ended, strict=True))
    return FleetActivity(minutes=minutes, is_whole=len(turns) < LOOKED_AT)


def _minute(at: datetime, now: datetime) -> int | None:
    ago = int((now - at).total_seconds() // 60)
    place = MINUTES - 1 - max(0, ago)
    return place if place >= 0 else None


def _told(accepted: int, ended: Sequence[RecentTurn]) -> FleetMinute:
    took = sorted(
        (turn.ended_at - turn.accepted_at).total_seconds() for turn in ended if turn.ended_at is not None
    )
    return FleetMinute(
        accepted=accepted,
        ended=len(ended),
        failed=sum(turn.state in _FAILED for turn in ended),
        p95_s=took[min(len(took) - 1, len(took) * 95 // 100)] if took else None,
        cost_usd=sum(turn.cost_usd or 0.0 for turn in ended),
    )
