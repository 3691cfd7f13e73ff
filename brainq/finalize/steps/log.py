"""The assistant's message and the turn's result, into SQL."""

from __future__ import annotations

from typing import Any

from brainq.finalize.ports import StepContext
from brainq.finalize.result import result_of


class LogAnswer:
    """Writes the answer to the event log and the result to the turn's row, in one transaction with its step."""

    name = "log"

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        context.records.record_answer(context.claim, result_of(context.turn), context.brain.redact_logs)
