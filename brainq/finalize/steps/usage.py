"""The usage callback."""

from __future__ import annotations

from typing import Any

from brainq.brain import Brain
from brainq.contracts.callbacks import UsageInfo
from brainq.contracts.usage import TokenUsage
from brainq.finalize.step import StepContext

NOTHING = TokenUsage()


class CallUsage:
    """Calls `on_usage` with the turn's tokens, if any count is not zero. At least once, with a stable step_key."""

    name = "usage"
    needs = ("citations",)

    def is_configured(self, brain: Brain) -> bool:
        return brain.callbacks.on_usage is not None

    def run(self, context: StepContext) -> None:
        turn, callback = context.turn, context.brain.callbacks.on_usage
        if callback is None or turn.usage == NOTHING:
            return
        callback(
            UsageInfo(
                turn_id=turn.request.turn_id,
                session_id=turn.request.session_id,
                step_key=context.claim.step_key,
                usage=turn.usage,
                model=turn.request.model or _name(context.brain.model),
                cost_usd=turn.cost_usd if turn.cost_known else None,
            )
        )


def _name(model: Any) -> str:
    return model if isinstance(model, str) else str(model.name)
