"""Estimated over real tokens: samples, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One text, or one stretch of a conversation. Both counts in tokens; `real` is more than 0."""

    estimated: int
    real: int


@dataclass(frozen=True, slots=True)
class Ratios:
    """estimated / real: nearest-rank percentiles over samples, and the ratio of the sums."""

    samples: int
    p5: float
    median: float
    p95: float
    overall: float


def ratios(samples: Sequence[Sample]) -> Ratios:
    """Raises ValueError if there is no sample."""
    if not samples:
        raise ValueError("there are no samples")
    found = sorted(sample.estimated / sample.real for sample in samples)

    def at(percent: float) -> float:
        return found[max(1, math.ceil(len(found) * percent / 100)) - 1]

    overall = sum(sample.estimated for sample in samples) / sum(sample.real for sample in samples)
    return Ratios(len(found), at(5), at(50), at(95), overall)
