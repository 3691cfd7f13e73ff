"""From a prepared step to what is asked: how much it may take at most, and how full the context is. Pure."""

from __future__ import annotations

from brainq.contracts.claim import StepStart, TurnStart
from brainq.contracts.usage import Price, TokenUsage
from brainq.contracts.view import TurnView
from brainq.providers.spent import most_usd
from brainq.turn.begin import Setting
from brainq.turn.context.mailbox import readiness_word
from brainq.turn.outcome import StepRequest
from brainq.turn.prepare import PreparedStep


def step_request(
    view: TurnView,
    setting: Setting,
    step: PreparedStep,
    price: Price,
    all_tools: int,
    start: TurnStart | None,
) -> StepRequest:
    """What the step asks, and what it is begun with.

    all_tools   how many the brain has: fewer were chosen for this turn
    start       what the turn begins with, if it has not begun
    """
    # Where the length of the reply is bounded its worst case is reserved, too.
    worst = TokenUsage(
        input_tokens=step.tracker.tokens(step.estimate), output_tokens=setting.limits.max_output_tokens or 0
    )
    begin = StepStart(
        estimate=step.estimate,
        most_tokens=worst.total,
        most_usd=most_usd(setting.provider, setting.model, worst, price),
        shown=() if len(step.chosen) == all_tools else tuple(spec.name for spec in step.chosen),
        drained=len(view.inputs),
        inputs=step.inputs,
        readiness=readiness_word(step.drain),
        full=step.tracker.warns(step.estimate),
        turn=start,
    )
    return StepRequest(setting, step.preparation.messages, (*step.chosen, *step.added), begin)
