"""The result going out: the turn's one final event."""

from __future__ import annotations

from typing import Any

from brainq.finalize.result import result_of
from brainq.finalize.step import StepContext


class SendResult:
    """Publishes the TurnResult, and gives it to the call that started the turn, if one did. A result the sweeper sent
    before stays as it went out."""

    name = "result"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn = context.turn
        if turn.request.parent is None or context.parents is None:
            context.send(result_of(turn))
            return
        context.chain.publish(result_of(turn))
        claim = context.claim
        sent = context.chain.published(claim.session_id, claim.turn_id)
        context.parents.deliver(turn.request, sent or result_of(turn))
