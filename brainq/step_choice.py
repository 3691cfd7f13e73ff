"""`Brain(for_step=...)`: another model, or another way to ask, for chosen steps of a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.options import ModelOptions
from brainq.contracts.usage import TokenUsage
from brainq.providers.base import Provider


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A step about to be made, as far as its turn is known.

    step           counted from 1
    calls          those that the model has asked for in this turn
    failed_calls   those of the step before that did not succeed
    usage, cost_usd   the turn's so far; money of models without a known price is left out
    model          what the turn itself named; None: the brain's
    """

    turn: TurnInfo
    step: int
    calls: int
    failed_calls: int
    usage: TokenUsage
    cost_usd: float
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StepChoice:
    """How one step is asked. What is None is as the turn and the brain say.

    model     `provider:model`, or a Provider
    options   a ModelOptions, or a mapping of its fields; over those of the turn
    """

    model: str | Provider | None = None
    options: ModelOptions | Mapping[str, Any] | None = None


ForStep = Callable[[StepInfo], StepChoice | None] | Callable[[StepInfo], Awaitable[StepChoice | None]]
"""Must depend on what it is told alone: a step that is made again is asked about again. None: as the turn says."""
