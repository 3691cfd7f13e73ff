"""How one step's model is asked: what is said of the step stands over the turn's, and that over the brain's. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from brainq.contracts.options import NO_OPTIONS, TOOL_CHOICES, ModelOptions, TurnOptions, options_of
from brainq.errors import InvalidInput

_FREE = (None, "auto", "none")


def check_tool_choice(options: TurnOptions, tools: Iterable[str]) -> None:
    """Raises InvalidInput where the tool to call is none of the turn's `tools`."""
    choice = options.tool_choice
    if choice is None or choice in TOOL_CHOICES:
        return
    known = sorted(tools)
    if choice not in known:
        close = get_close_matches(choice, known, 1)
        meant = (
            f"did you mean {close[0]!r}?" if close else f"the turn's tools are {', '.join(known) or 'none'}"
        )
        raise InvalidInput("options.tool_choice", f"there is no tool {choice!r}; {meant}")


def step_options(
    step: int, brain: ModelOptions, turn: TurnOptions, chosen: ModelOptions = NO_OPTIONS
) -> ModelOptions:
    """The options of a step, counted from 1. `chosen`: what was said of this very step.

    A turn whose model must call a tool at each step could never answer: it would go on until its limit. So what forces
    a call holds for the first step, unless it was said of the step.
    """
    options = options_of(turn).over(brain)
    if step > 1 and options.tool_choice not in _FREE:
        options = options.model_copy(update={"tool_choice": None})
    return chosen.over(options)
