"""What a cooperative tool returns when its time is up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Partial:
    """`return Partial(value)`: this is what the tool had when it stopped early.

    The model is told that the result is incomplete.
    """

    value: Any
