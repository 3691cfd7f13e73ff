"""Judgements whose doorbell was lost, or whose next try has come: their judges are rung."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

AFTER_S = 1.0  # a row that is due this long was not rung, or its doorbell was lost
AT_ONCE = 100


class DueJudgements(Protocol):
    """Judgements nobody holds that have been due for a while, on SQL's own clock."""

    def due(self, older_than_s: float, limit: int) -> Sequence[tuple[str, str, str]]: ...


class Bells(Protocol):
    """Rings for a judge, not more often than every few seconds."""

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> str: ...


class JudgeBells:
    """Rings for what is due."""

    def __init__(self, rows: DueJudgements, bells: Bells) -> None:
        self._rows = rows
        self._bells = bells

    def ring(self) -> int:
        """How many judges were rung."""
        due = self._rows.due(AFTER_S, AT_ONCE)
        return sum(self._bells.ring_judge(*judgement) == "RUNG" for judgement in due)
