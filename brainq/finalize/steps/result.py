"""The result going out: the turn's one final event."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.finalize.result import result_of, sent_before
from brainq.finalize.step import StepContext


class SendResult:
    """Publishes the TurnResult, and gives it to the call that started the turn, if one did. A result the sweeper sent
    before stays as it went out."""

    name = "result"
    needs = ("citations", "log")
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim = context.turn, context.claim
        result = result_of(turn, sent_before(claim.failing))
        if turn.request.parent is None or context.parents is None:
            context.send(result)
            return
        context.chain.publish(result)
        sent = context.chain.published(claim.session_id, claim.turn_id)
        context.parents.deliver(turn.request, sent or result)
