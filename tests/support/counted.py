"""The counts of this process from the beginning of a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from brainq.runtime.observe.metrics.counters import COUNTERS, Counters


@pytest.fixture
def counted() -> Iterator[Counters]:
    """Yield this process's counters, which begin at zero."""
    COUNTERS.begin()
    yield COUNTERS
    COUNTERS.begin()


def read_by(text: str) -> Callable[..., float | None]:
    """Return a reader of the metrics, as Prometheus reads them.

    `read("brainq_turns_total", ending="completed")` is the sum of the matching series, or None if there is none.
    """
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def read(name: str, **labels: str) -> float | None:
        found = [sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()]
        return sum(found) if found else None

    return read
