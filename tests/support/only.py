"""The parts of a deployment with one brain."""

from __future__ import annotations

from typing import TypeVar

from brainq.engine.brain.brains import ByBrain

T = TypeVar("T")


def only(item: T) -> ByBrain[T]:
    return ByBrain({"only": item})
