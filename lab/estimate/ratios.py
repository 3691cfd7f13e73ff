"""Ratios of estimated to real tokens: samples, and statistics over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A text, or a part of a conversation, with its counts in tokens. `real` is above 0."""

    estimated: int
    real: int


@dataclass(frozen=True, slots=True)
class Ratios:
    """The ratios estimated / real: nearest-rank percentiles over samples, and the ratio of the sums."""

    samples: int
    p5: float
    median: float
    p95: float
    overall: float


def ratios(samples: Sequence[Sample]) -> Ratios:
    """Return the ratios of the samples. Raises ValueError if there is no sample."""
    if not samples:
        raise ValueError("there are no samples")
    found = sorted(sample.estimated / sample.real for sample in samples)

    def at(percent: float) -> float:
        return found[max(1, math.ceil(len(found) * percent / 100)) - 1]

    overall = sum(sample.estimated for sample in samples) / sum(sample.real for sample in samples)
    return Ratios(len(found), at(5), at(50), at(95), overall)
