"""Counters: batches that are told apart, histograms, and names that somebody outside chooses."""

from __future__ import annotations

import os
import threading

from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS, SUM, Counters
from brainq.runtime.observe.metrics.recording import OTHER, BoundedLabel


def test_a_batch_that_was_not_taken_is_given_again_and_the_next_has_what_came_meanwhile() -> None:
    counters = Counters()
    assert counters.batch() is None
    counters.add(m.STEPS, "shop", by=2)
    first = counters.batch()
    counters.add(m.STEPS, "shop")
    assert counters.batch() is first
    assert first is not None
    assert (first.number, first.deltas) == (1, {("brainq_steps", "shop"): 2})
    counters.mark_flushed(first)
    second = counters.batch()
    assert second is not None
    assert (second.number, second.deltas) == (2, {("brainq_steps", "shop"): 1})
    counters.mark_flushed(first)  # a second time, and late
    assert counters.batch() is second
    assert counters.totals() == {("brainq_steps", "shop"): 3}


def test_a_value_goes_into_the_bucket_that_holds_it_and_into_the_sum() -> None:
    counters = Counters()
    for value in (0.1, 0.10001, -5.0, 1e9):
        counters.observe(m.TURN_DURATION, value, "shop", "completed")
    name, labels = m.TURN_DURATION.name, ("shop", "completed")
    assert counters.totals() == {
        (name, *labels, "0.1"): 2,
        (name, *labels, "0.25"): 1,
        (name, *labels, "inf"): 1,
        (name, *labels, SUM): 0.1 + 0.10001 + 1e9,
    }


def test_threads_lose_no_count() -> None:
    counters = Counters()
    taken: list[float] = []

    def count() -> None:
        for _ in range(2_000):
            counters.add(m.DROPPED)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (batch := counters.batch()) is not None:
            taken += batch.deltas.values()
            counters.mark_flushed(batch)
    last = counters.batch()
    assert sum(taken) + sum(last.deltas.values() if last else ()) == 8_000


def test_a_child_process_counts_for_itself() -> None:
    COUNTERS.add(m.DROPPED)
    name, (reader, writer) = COUNTERS.process, os.pipe()
    if (child := os.fork()) == 0:
        found = (COUNTERS.process != name, COUNTERS.batch() is None)
        os.write(writer, repr(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as said:
        assert said.read() == "(True, True)"
    assert COUNTERS.process == name


def test_so_many_names_are_themselves_and_the_others_are_one() -> None:
    names = BoundedLabel(max_names=2)
    assert [names[name] for name in ("a", "x" * 101, "b", "c", "a", "b")] == ["a", OTHER, "b", OTHER, "a", "b"]
    assert BoundedLabel()["a\nb"] == OTHER


def test_every_metric_is_named_as_prometheus_wants_it() -> None:
    assert len({metric.name for metric in m.ALL}) == len(m.ALL)
    for metric in m.ALL:
        assert metric.name.startswith(("brainq_", "gen_ai_")), metric
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_ms")), metric
        assert metric.help.endswith("."), metric
        assert list(metric.bounds) == sorted(set(metric.bounds)), metric
        assert bool(metric.bounds) == (metric.kind == "histogram"), metric
        assert (metric.unit == "s") == metric.name.endswith("_seconds"), metric
        assert not {"session", "session_id", "turn", "turn_id", "tenant", "caller"} & set(metric.labels), metric
