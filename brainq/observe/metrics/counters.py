"""Counters of a process: counted in memory, flushed as deltas that are told apart by a number."""

from __future__ import annotations

import os
import threading
import uuid
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from brainq.observe.metrics.metric import Metric

SUM = "sum"

Cell = tuple[str, ...]
"""Metric, label values; and of a histogram the bucket's bound, or SUM."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What was counted since the batch before. The same number is the same batch, however often it is sent."""

    number: int
    deltas: Mapping[Cell, float]


class Counters:
    """Thread-safe. `process` is new for each: numbers of batches are told apart by it.

    A batch that was not taken is given again; what is counted meanwhile goes into the next one. A process that is
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
        cell = (metric.name, *labels)
        with self._lock:
            self._fresh[cell] = self._fresh.get(cell, 0) + by

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Put one value into a histogram; below 0 (a clock stepped back) it counts as 0."""
        if value < 0:
            value = 0.0
        name, bound = metric.name, metric.buckets[bisect_left(metric.bounds, value)]
        bucket, total = (name, *labels, bound), (name, *labels, SUM)
        with self._lock:
            fresh = self._fresh
            fresh[bucket] = fresh.get(bucket, 0) + 1
            fresh[total] = fresh.get(total, 0) + value

    def batch(self) -> Batch | None:
        """The batch that is to be flushed; None where nothing was counted."""
        with self._lock:
            if self._batch is None and self._fresh:
                self._number += 1
                self._batch = Batch(self._number, self._fresh)
                self._keep(self._fresh)
                self._fresh = {}
            return self._batch

    def taken(self, batch: Batch) -> None:
        """It was flushed."""
        with self._lock:
            if self._batch is batch:
                self._batch = None

    def totals(self) -> dict[Cell, float]:
        """All that was counted since the process began."""
        with self._lock:
            found = dict(self._totals)
            for cell, value in self._fresh.items():
                found[cell] = found.get(cell, 0) + value
            return found

    def _keep(self, deltas: Mapping[Cell, float]) -> None:
        for cell, value in deltas.items():
            self._totals[cell] = self._totals.get(cell, 0) + value


COUNTERS = Counters()
"""This process's. One a process, as its log is: whoever works in it counts here."""

# A child counts for itself, under a name of its own.
os.register_at_fork(after_in_child=COUNTERS.begin)
