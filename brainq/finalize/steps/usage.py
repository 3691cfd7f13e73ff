"""The usage callback."""

from __future__ import annotations

from typing import Any

from brainq.contracts.callbacks import UsageInfo
from brainq.contracts.usage import TokenUsage
from brainq.finalize.step import StepContext

NOTHING = TokenUsage()


class CallUsage:
    """Calls `on_usage` with the turn's tokens, if any count is not zero. At least once, with a stable step_key."""

    name = "usage"

    def is_configured(self, brain: Any) -> bool:
        return brain.callbacks.on_usage is not None

    def run(self, context: StepContext) -> None:
        turn = context.turn
        if turn.usage == NOTHING:
            return
        context.brain.callbacks.on_usage(
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
