"""What a brain's `for_step` says of the turn's next step."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.view import TurnView
from brainq.errors import InvalidInput
from brainq.step_choice import StepChoice, StepInfo

NO_CHOICE = StepChoice()


def choice_of(brain: Brain, view: TurnView, info: TurnInfo) -> StepChoice:
    """How the turn's next step is asked, as the brain chooses. Raises InvalidInput when its function fails."""
    if brain.for_step is None:
        return NO_CHOICE
    step = StepInfo(
        turn=info,
        step=view.step + 1,
        calls=sum(len(message.calls) for message in view.own),
        failed_calls=view.failed_calls,
        usage=view.usage,
        cost_usd=view.cost_usd,
        model=view.request.model,
    )
    try:
        choice = brain.for_step(step)
    except Exception as failure:
        raise InvalidInput("for_step", f"it raised {type(failure).__name__}: {failure}") from failure
    if choice is None:
        return NO_CHOICE
    if not isinstance(choice, StepChoice):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("for_step", f"it must return a StepChoice or None, got {type(choice).__name__}")
    return choice
