"""Judgements whose doorbell was lost, or whose next try has come: their judges are rung."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.ports.finals import Finals
from brainq.ports.judgement_rows import JudgementRows

AFTER_S = 1.0  # a row that is due this long was not rung, or its doorbell was lost
AT_ONCE = 100


@dataclass(eq=False)
class JudgeBells:
    """Rings for what is due."""

    rows: JudgementRows
    finals: Finals

    def ring(self) -> int:
        """How many judges were rung."""
        due = self.rows.due(AFTER_S, AT_ONCE)
        return sum(self.finals.ring_judge(*judgement) == "RUNG" for judgement in due)
