"""The counters of a process, which are flushed as numbered deltas, and all metrics at one moment as series."""

from __future__ import annotations

import os
import threading
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brainq.runtime.observe.metrics.catalogue import COUNTED, NO_BOUND, Metric

SUM = "sum"
Labels = tuple[str, ...]
Reading = tuple[Metric, Labels, float]
"""One value of a gauge or for a histogram, or the increment of a counter."""
Cell = tuple[str, ...]
"""A metric with its label values. For a histogram, the bucket's bound, or SUM, follows."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The counts since the previous batch. A number always means the same batch, however often it is sent."""

    number: int
    deltas: Mapping[Cell, float]


class Counters:
    """Thread-safe counters. `process` is unique, and distinguishes the numbers of batches.

    A batch that was not flushed is returned again, and later counts go into the next one. A killed process loses the
    counts since its last flush. Nothing is ever counted twice.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start again at zero, under a new name."""
        self.process = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._fresh: dict[Cell, float] = {}
        self._batch: Batch | None = None
        self._number = 0
        self._totals: dict[Cell, float] = {}

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Increase a counter by `by`, which is not negative."""
        self.record([(metric, labels, by)])

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a value to a histogram. A negative value (a clock stepped back) counts as 0."""
        self.record([(metric, labels, value)])

    def record(self, readings: Iterable[Reading]) -> None:
        """Record several at once: values of histograms, and increments of other metrics."""
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
        """Return the batch to flush, or None if nothing was counted."""
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
        """Return all counts since the process began."""
        with self._lock:
            totals = dict(self._totals)
            for cell, value in self._fresh.items():
                totals[cell] = totals.get(cell, 0) + value
            return totals

    def _keep(self, deltas: Mapping[Cell, float]) -> None:
        for cell, value in deltas.items():
            self._totals[cell] = self._totals.get(cell, 0) + value


COUNTERS = Counters()
"""The counters of this process."""

# A child process counts for itself, under its own name.
os.register_at_fork(after_in_child=COUNTERS.begin)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: the number of values in each bucket, of which the last has no bound, and their sum."""

    counts: tuple[float, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one metric, by its labels' values."""

    metric: Metric
    values: Mapping[Labels, float] = field(default_factory=dict[Labels, float])
    distributions: Mapping[Labels, Distribution] = field(default_factory=dict[Labels, Distribution])


def collect_series(cells: Mapping[Cell, float], readings: Sequence[Reading]) -> list[Series]:
    """Return the counted and the read values, by metric. Metrics without values are omitted.

    A cell of a metric that this version does not know is omitted, because another version counted it.
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
    """Return the bucket of this bound. If another version had other bounds, return the next bucket that covers it."""
    return len(metric.bounds) if bound == NO_BOUND else bisect_left(metric.bounds, float(bound))
