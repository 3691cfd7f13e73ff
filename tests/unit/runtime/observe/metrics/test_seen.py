"""From what was counted and read to what Prometheus reads."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import SUM, Counters, Distribution, collect_series
from brainq.runtime.observe.metrics.prometheus import prometheus_text


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_written_is_read_by_prometheus_own_parser() -> None:
    counters = Counters()
    nasty = 'a"b\\c\nd'
    counters.add(m.TURNS, nasty, "completed", "answered", by=3)
    counters.observe(m.TURN_WAIT, 0.02, "shop")
    counters.observe(m.TURN_WAIT, 7.0, "shop")
    counters.observe(m.TURN_WAIT, 1e6, "shop")
    text = prometheus_text(collect_series(counters.totals(), [(m.UP, ("redis",), 0.0)]))
    found = samples(text)
    named = (("brain", nasty), ("ending", "completed"), ("stop_reason", "answered"))
    assert found["brainq_turns_total", named] == 3
    assert found["brainq_up", (("service", "redis"),)] == 0
    buckets = {dict(labels)["le"]: value for (name, labels), value in found.items() if name.endswith("_bucket")}
    assert (buckets["0.01"], buckets["0.05"], buckets["5"], buckets["10"]) == (0, 1, 1, 2)
    assert (buckets["3600"], buckets["+Inf"]) == (2, 3)
    assert found["brainq_turn_wait_seconds_count", (("brain", "shop"),)] == 3
    assert found["brainq_turn_wait_seconds_sum", (("brain", "shop"),)] == pytest.approx(1_000_007.02)
    assert "# TYPE brainq_turns_total counter" in text
    assert "_created" not in text


def test_what_is_always_shown_begins_at_zero() -> None:
    found = samples(prometheus_text(collect_series({}, [])))
    assert found["brainq_leases_lapsed_total", (("of", "turn"),)] == 0
    assert found["brainq_late_results_total", (("effect", "destructive"),)] == 0
    assert found["brainq_series_dropped_total", ()] == 0


def test_what_another_version_counted_is_shown_as_far_as_it_is_known() -> None:
    wait = m.TURN_WAIT.name
    cells = {
        ("brainq_unheard_of", "x"): 1.0,
        (wait, "shop", "0.2"): 2.0,  # it had such a bucket
        (wait, "shop", "9999"): 1.0,
        (wait, "shop", SUM): 3.0,
        (wait, "too", "many", SUM): 3.0,
        (m.STEPS.name,): 1.0,
    }
    (series,) = [each for each in collect_series(cells, []) if not each.metric.always]
    (found,) = series.distributions.values()
    counts = dict(zip((*m.TURN_WAIT.bounds, None), found.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {0.5: 2.0, None: 1.0}
    assert found == Distribution(found.counts, 3.0)
