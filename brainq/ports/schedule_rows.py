"""Schedules in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.schedule import ScheduleRow


class ScheduleRows(Protocol):
    """Fitted by `store.repositories.schedules.Schedules`.

    due    those whose time has come, the one longest due first
    move   on from the due instant `was_ms`; False where somebody else did, or it was changed meanwhile
    """

    def due(self, now_ms: int, most: int) -> Sequence[ScheduleRow]: ...
    def move(
        self, schedule_id: str, was_ms: int, next_ms: int | None, *, turn_id: str = "", note: str = ""
    ) -> bool: ...
