"""The assistant's message and the turn's result, into SQL."""

from __future__ import annotations

from typing import Any

from brainq.finalize.ports import StepContext
from brainq.finalize.result import result_of


class LogAnswer:
    """Writes the answer to the event log and the result to the turn's row, in one transaction with its step."""

    name = "log"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim = context.turn, context.claim
        # A result that the sweeper sent before is the one the caller has: SQL keeps that, with its warnings.
        sent = context.chain.published(claim.session_id, claim.turn_id) if claim.sent else None
        context.records.record_answer(
            claim,
            sent or result_of(turn),
            context.brain.redact_logs,
            context.details(),
            turn.request.user_message,
        )
