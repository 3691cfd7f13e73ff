"""The turn-end callback."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.contracts.callbacks import TurnEnd
from brainq.finalize.result import result_of
from brainq.finalize.step import StepContext


class CallTurnEnd:
    """Calls `on_turn_end` with the result. At least once, with a stable step_key."""

    name = "end"

    def is_configured(self, brain: Brain) -> bool:
        return brain.callbacks.on_turn_end is not None

    def run(self, context: StepContext) -> None:
        turn, callback = context.turn, context.brain.callbacks.on_turn_end
        if callback is None or turn.request.kind == "compact":
            return  # nothing was asked and nothing answered; `on_turn_start` was not called either
        callback(
            TurnEnd(
                turn_id=turn.request.turn_id,
                session_id=turn.request.session_id,
                result=result_of(turn),
                step_key=context.claim.step_key,
            )
        )
