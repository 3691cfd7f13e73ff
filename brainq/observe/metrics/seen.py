"""All metrics at one moment: what was counted, and what was read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from brainq.observe.metrics.catalogue import COUNTED
from brainq.observe.metrics.counters import SUM, Cell
from brainq.observe.metrics.metric import NO_BOUND, Metric

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: how many values were in each bucket, the last of which has no bound, and their sum."""

    counts: tuple[float, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Series:
    """All of one metric, by its labels' values."""

    metric: Metric
    values: Mapping[Labels, float] = field(default_factory=dict[Labels, float])
    distributions: Mapping[Labels, Distribution] = field(default_factory=dict[Labels, Distribution])


Reading = tuple[Metric, Labels, float]
"""One value of a gauge."""


def series_of(cells: Mapping[Cell, float], readings: Sequence[Reading]) -> list[Series]:
    """What was counted, and what was read, by metric; metrics of which there is nothing are left out.

    A cell that this version does not know is left out, too: another version counted it.
    """
    values: dict[Metric, dict[Labels, float]] = {
        metric: dict.fromkeys(metric.always, 0.0) for metric in COUNTED.values() if metric.always
    }
    buckets: dict[Metric, dict[Labels, list[float]]] = {}
    sums: dict[tuple[Metric, Labels], float] = {}
    for cell, value in cells.items():
        metric = COUNTED.get(cell[0])
        if metric is None:
            continue
        many = 1 + len(metric.labels)
        labels, rest = cell[1:many], cell[many:]
        if len(cell) != many + (metric.kind == "histogram"):
            continue
        if metric.kind == "counter":
            values.setdefault(metric, {})[labels] = value
        elif rest == (SUM,):
            sums[metric, labels] = value
        else:
            row = buckets.setdefault(metric, {}).setdefault(labels, [0.0] * (len(metric.bounds) + 1))
            row[_place(metric, rest[0])] += value
    for metric, labels, value in readings:
        values.setdefault(metric, {})[labels] = value
    counted = [
        Series(
            metric,
            distributions={
                labels: Distribution(tuple(row), sums.get((metric, labels), 0.0))
                for labels, row in rows.items()
            },
        )
        for metric, rows in buckets.items()
    ]
    return [*counted, *(Series(metric, values=found) for metric, found in values.items())]


def _place(metric: Metric, bound: str) -> int:
    """The bucket of this bound; where another version had others, the next that holds it."""
    return len(metric.bounds) if bound == NO_BOUND else bisect_left(metric.bounds, float(bound))
