"""The limits of a turn and what is left of them."""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, model_validator

from brainq.contracts.base import Wire

DEFAULT_STEPS = 20
"""Enough for an agent that reads a few files, changes one and looks again; a loop still ends within minutes."""


class Limits(Wire):
    """What one turn may use. `max_tool_calls=None` means `max_steps`.

    timeout_s            active time until the deadline, seconds
    max_wait_s           how long it may wait, for its session or for room, before it begins, seconds; None: no limit
    first_token_s        how long a model's stream may take until its first output, seconds
    idle_s               how long it may be silent after that, seconds; at most `first_token_s` counts
    max_output_tokens    length of one reply; where it is set, tokens and money of a step are reserved whole
    max_total_tokens     input + output tokens over all steps; None: no limit
    max_cost_usd         money over all steps; None: no limit
    """

    timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    max_wait_s: float | None = Field(default=None, gt=0, le=30 * 86_400)
    first_token_s: float = Field(default=120.0, gt=0, le=86_400)
    idle_s: float = Field(default=60.0, gt=0, le=86_400)
    max_steps: int = Field(default=DEFAULT_STEPS, ge=1, le=10_000)
    max_tool_calls: int | None = Field(default=None, ge=0, le=100_000)
    max_reflections: int = Field(default=4, ge=0, le=1_000)
    max_context_tokens: int = Field(default=200_000, ge=256)
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)

    @property
    def tool_calls(self) -> int:
        return self.max_steps if self.max_tool_calls is None else self.max_tool_calls

    @model_validator(mode="after")
    def _finite(self) -> Self:
        for name in ("timeout_s", "max_wait_s", "first_token_s", "idle_s"):
            if math.isnan(getattr(self, name) or 0.0):
                raise ValueError(f"{name} must be a number of seconds")
        return self
