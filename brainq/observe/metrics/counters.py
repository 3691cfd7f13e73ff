"""Counters of a process, flushed as numbered deltas, and all metrics at one moment as series."""

from __future__ import annotations

import os
import threading
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brainq.observe.metrics.catalogue import COUNTED, NO_BOUND, Metric

SUM = "sum"
Labels = tuple[str, ...]
Reading = tuple[Metric, Labels, float]
"""One value: of a gauge, for a histogram, or what is added to a counter."""
Cell = tuple[str, ...]
"""Metric, label values; and of a histogram the bucket's bound, or SUM."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What was counted since the batch before. The same number is the same batch, however often it is sent."""

    number: int
    deltas: Mapping[Cell, float]


class Counters:
    """Thread-safe. `process` is new for each: it distinguishes numbers of batches.

    A batch that was not flushed is given again; what is counted meanwhile goes into the next one. A process that is
    killed loses what it counted since its last flush, and nothing is ever counted twice.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from nothing, under another name."""
        self.process = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._fresh: dict[Cell, float] = {}
        self._batch: Batch | None = None
        self._number = 0
        self._totals: dict[Cell, float] = {}

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Count `by` more, which is not below 0."""
        self.record([(metric, labels, by)])

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Put one value into a histogram; below 0 (a clock stepped back) it counts as 0."""
        self.record([(metric, labels, value)])

    def record(self, readings: Iterable[Reading]) -> None:
        """Count several at once: values of histograms, and of other metrics so much more."""
        with self._lock:
            fresh = self._fresh
            for metric, labels, value in readings:
                cell = (metric.name, *labels)
                if metric.bounds:
                    value = max(value, 0.0)
                    bucket = (*cell, metric.buckets[bisect_left(metric.bounds, value)])
                    fresh[bucket] = fresh.get(bucket, 0) + 1
                    cell = (*cell, SUM)
                fresh[cell] = fresh.get(cell, 0) + value

    def batch(self) -> Batch | None:
        """The batch that is to be flushed; None where nothing was counted."""
        with self._lock:
            if self._batch is None and self._fresh:
                self._number += 1
                self._batch = Batch(self._number, self._fresh)
                self._keep(self._fresh)
                self._fresh = {}
            return self._batch

    def mark_flushed(self, batch: Batch) -> None:
        with self._lock:
            if self._batch is batch:
                self._batch = None

    def totals(self) -> dict[Cell, float]:
        """All that was counted since the process began."""
        with self._lock:
            totals = dict(self._totals)
            for cell, value in self._fresh.items():
                totals[cell] = totals.get(cell, 0) + value
            return totals

    def _keep(self, deltas: Mapping[Cell, float]) -> None:
        for cell, value in deltas.items():
            self._totals[cell] = self._totals.get(cell, 0) + value


COUNTERS = Counters()
"""This process's: all that works in it counts here."""

# A child counts for itself, under a name of its own.
os.register_at_fork(after_in_child=COUNTERS.begin)


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


def collect_series(cells: Mapping[Cell, float], readings: Sequence[Reading]) -> list[Series]:
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
                labels: Distribution(tuple(row), sums.get((metric, labels), 0.0)) for labels, row in rows.items()
            },
        )
        for metric, rows in buckets.items()
    ]
    return [*counted, *(Series(metric, values=by_labels) for metric, by_labels in values.items())]


def _place(metric: Metric, bound: str) -> int:
    """The bucket of this bound; where another version had others, the next that holds it."""
    return len(metric.bounds) if bound == NO_BOUND else bisect_left(metric.bounds, float(bound))
