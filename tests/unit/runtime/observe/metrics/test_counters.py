"""The counters of a process, and what is seen of turns in them."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS, SUM, Counters, Distribution, collect_series
from brainq.runtime.observe.metrics.prometheus import prometheus_text
from brainq.runtime.observe.metrics.recording import OTHER, BoundedLabel, count_lost, count_turn

# Counters: batches that are told apart, histograms, and names that somebody outside chooses.


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


# From what was counted and read to what Prometheus reads.


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


# What is counted of a turn whose result was recorded.


def result(**more: Any) -> TurnResult:
    given: dict[str, Any] = {"turn_id": "turn-1", "session_id": "s1", "text": "", "steps": 2}
    given |= {"ending": Ending.COMPLETED, "stop_reason": StopReason.ANSWERED}
    return TurnResult(**given | more)


def call(tool: str, effect: Effect, status: TraceStatus, **more: Any) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=more.pop("call_id", "c1-0"), tool=tool, effect=effect, status=status, step=1, wave=0, **more
    )


def counted(turn: TurnResult, *trace: ToolTraceEntry, **more: Any) -> dict[tuple[str, ...], float]:
    counters = Counters()
    given: dict[str, Any] = {
        "brain": "shop",
        "wait_ms": 0,
        "has_tool": {"look", "save"}.__contains__,
        "client_tools": ["ring"],
    }
    count_turn(counters, turn, trace, **{**given, **more})
    return counters.totals()


def test_a_turn_with_its_time_and_steps() -> None:
    found = counted(result(elapsed_ms=9_000, parked_ms=7_000), wait_ms=300)
    assert found["brainq_turns", "shop", "completed", "answered"] == 1
    assert found["brainq_steps", "shop"] == 2
    assert found["brainq_turn_duration_seconds", "shop", "completed", "2.5"] == 1
    assert found["brainq_turn_duration_seconds", "shop", "completed", SUM] == 2
    assert found["brainq_turn_wait_seconds", "shop", SUM] == 0.3
    assert found["brainq_turn_parked_seconds", "shop", SUM] == 7
    assert not any(name == "brainq_budget_stops" for name, *_ in found)


@pytest.mark.parametrize(
    ("stop_reason", "limit"),
    [("max_steps", "max_steps"), ("max_cost", "max_cost_usd"), ("deadline", "timeout_s"), ("waited", "max_wait_s")],
)
def test_a_limit_that_ended_it(stop_reason: str, limit: str) -> None:
    assert counted(result(stop_reason=stop_reason))["brainq_budget_stops", "shop", limit] == 1


def test_calls_over_the_budget_count_once_a_turn() -> None:
    denied = [call("look", Effect.READ_ONLY, TraceStatus.DENIED, detail="budget", call_id=f"c1-{n}") for n in (0, 1)]
    found = counted(result(), *denied)
    assert found["brainq_budget_stops", "shop", "max_tool_calls"] == 1
    assert found["brainq_calls", "look", "read_only", "denied"] == 2
    assert not any(name == "brainq_call_duration_seconds" for name, *_ in found)


def test_calls_with_their_run_time_and_their_waits() -> None:
    at: dict[str, Any] = {"dispatched_at_ms": 1_000, "started_at_ms": 1_200, "latency_ms": 40}
    found = counted(
        result(),
        call("look", Effect.READ_ONLY, TraceStatus.FAILED, **at),
        call("save", Effect.LOCAL_WRITE, TraceStatus.COMPLETED, lanes=("a",), lane_wait_ms=2_000, **at),
        call("save", Effect.LOCAL_WRITE, TraceStatus.UNKNOWN, lanes=("a",), attempt=2, **at),
    )
    assert found["brainq_calls", "look", "read_only", "failed"] == 1
    assert found["brainq_calls", "save", "local_write", "unknown"] == 1
    assert found["brainq_call_duration_seconds", "look", "read_only", SUM] == 0.04
    assert found["brainq_call_queue_seconds", "local_write", SUM] == pytest.approx(0.2)  # the first attempt's alone
    assert found["brainq_lane_wait_seconds", "local_write", SUM] == 2
    assert found["brainq_lane_wait_seconds", "local_write", "0.005"] == 1
    assert not any(cell[:2] == ("brainq_lane_wait_seconds", "read_only") for cell in found)


def test_tools_of_clients_and_of_a_models_invention_are_bounded() -> None:
    found = counted(
        result(),
        call("ring", Effect.NETWORK, TraceStatus.COMPLETED),
        call("made_up", Effect.READ_ONLY, TraceStatus.DENIED),
    )
    assert {cell[1] for cell in found if cell[0] == "brainq_calls"} == {"ring", "invented"}
    many = [f"client_{n}" for n in range(200)]
    calls = [call(name, Effect.NETWORK, TraceStatus.COMPLETED) for name in many]
    tools = {cell[1] for cell in counted(result(), *calls, client_tools=many) if cell[0] == "brainq_calls"}
    assert "other" in tools
    assert len(tools) <= 51


def test_an_attempt_that_broke_off_counts_as_the_estimate_it_was_charged_as() -> None:
    counters = Counters()
    lost = Spend(kind="lost", step=1, model="gpt-4.1", input_tokens=50, output_tokens=7, cost_usd=0.5)
    count_lost(counters, [lost, Spend(kind="step", step=1, input_tokens=9), Spend(kind="child", step=1)], "openai")
    assert counters.totals() == {
        ("brainq_tokens", "openai", "gpt-4.1", "lost", "input"): 50,
        ("brainq_tokens", "openai", "gpt-4.1", "lost", "output"): 7,
        ("brainq_cost_usd", "openai", "gpt-4.1", "lost"): 0.5,
    }
