"""Thinking about the turn itself, between two steps."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from brainq.contracts.base import Wire

ThinkWord = Literal["off", "low", "medium", "high"]
"""A ThinkLevel as a plain word."""


class ThinkLevel(StrEnum):
    """How much a brain reflects. Every level above OFF reflects after a failed call; see `PERIODS` for the rest."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReflectionResult(Wire):
    """What a reflection brought; always one, also when none could be made.

    text      what the model is told before its next step; empty in a stub
    stub      why there is no text: `budget`, `deadline`, `model`; empty when a model reflected
    """

    step: int
    text: str = ""
    stub: str = ""
