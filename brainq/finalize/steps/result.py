"""The result going out: the turn's one final event."""

from __future__ import annotations

from typing import Any

from brainq.finalize.ports import StepContext
from brainq.finalize.result import result_of


class SendResult:
    """Publishes the TurnResult. A result the sweeper sent before stays as it went out."""

    name = "result"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        context.chain.publish(result_of(context.turn))
