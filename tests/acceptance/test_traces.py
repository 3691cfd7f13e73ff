"""One submit is one trace over four pools of real processes that send over OTLP, also when a worker was killed."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import TURN_SUBMIT
from brainq.client.handle import TurnHandle
from brainq.contracts.status import TraceStatus
from brainq.errors import TurnNotFound
from brainq.runtime.observe.tracing import call_span_id, place_at, traceparent_of
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.collector import Collector
from tests.support.spans import Recorder, Spans, recording
from tests.support.wait import wait_until
from tests.support.watch import parked, started, token_of
from tests.support.world import World

pytestmark = pytest.mark.full

POOLS = ("coordinator", "parallel", "serial", "finalizer")


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as made:
        yield made


@pytest.fixture(scope="module")
def traced_world(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("traced"),
        workers=dict.fromkeys(POOLS, 2),
        environment={
            "BRAINQ_APP": "tests.support.brains.people:brain",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "BRAINQ_LOG_LEVEL": "info",
            "BRAINQ_LOG_FORMAT": "json",
        },
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def traced(traced_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(traced_world.directory))
    yield traced_world
    traced_world.launch_dead()


@pytest.fixture
def producer() -> Generator[Recorder]:
    with recording() as made:
        yield made


def tree(world: World, collector: Collector, producer: Recorder, turn: TurnHandle, **counts: int) -> Spans:
    """All spans of the turn's trace, once those of its end, and so many of these names, have come from each process:
    connected, or the test fails."""
    world.done(turn)
    expected = {"invoke_agent": 1, "brainq.finalize decision": 1, **counts}
    submits = producer.spans.of_turn(turn.turn_id).named("brainq.submit")
    (submit,) = submits

    def found() -> Spans:
        return Spans([submit, *(span for span in collector.spans if span.trace_id == submit.trace_id)])

    def have_come() -> bool:
        mine = found().of_turn(turn.turn_id)
        return all(len(mine.named(name)) >= count for name, count in expected.items())

    wait_until(have_come, "each process has sent")
    # A span comes when it ends: after those that were opened in it.
    wait_until(lambda: not found().orphans(), "each span's parent has come")
    spans = found()
    mine = spans.of_turn(turn.turn_id)
    assert [span.name for span in collector.spans.of_turn(turn.turn_id) if span.trace_id != submit.trace_id] == []
    assert mine.one("invoke_agent").parent_id == submit.span_id
    assert len({span.span_id for span in spans}) == len(spans.all), "each span is sent once"
    return spans


def logged(world: World) -> list[dict[str, Any]]:
    """The lines of all workers, Celery's among them, from when their logs were set up."""
    lines = [line for path in (world.directory / "workers").glob("*.log") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_all_four_pools_are_in_one_trace(traced: World, collector: Collector, producer: Recorder) -> None:
    calls = [("read", {"name": "a"}), ("write", {"name": "b"}), ("read", {"name": "c", "fail": True})]
    turn = traced.client.submit("acme:all", script(calls, [("send_off", {"name": "d"})], final="done"))
    parked(turn, "outside")
    traced.client.complete_call(token_of(turn, "d"), "sent")
    assert turn.result(timeout_s=60).text == "done"
    spans = tree(traced, collector, producer, turn, chat=3, execute_tool=4)
    assert collector.roles >= set(POOLS)
    outcomes = [span.attributes["brainq.call.outcome"] for span in spans.named("execute_tool")]
    assert outcomes == ["completed", "completed", "failed", "parked"]
    assert len(spans.named("chat")) == 3
    last = spans.named("brainq.advance")[-1]
    assert last.links == (call_span_id(turn.turn_id, "c2-0", 1),)


def test_a_killed_reader_leaves_one_trace(traced: World, collector: Collector, producer: Recorder) -> None:
    turn = traced.client.submit("s-read", script([("read", {"name": "a", "gate": "r"})], final="done"))
    begun = started(turn, name="a")
    traced.kill_the("parallel", begun["pid"])
    open_gate("r")
    assert turn.result(timeout_s=60).text == "done"
    assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [1, 2], "the kill has fired"
    spans = tree(traced, collector, producer, turn, chat=2, execute_tool=1, **{"brainq.rescue": 1})
    assert [span.attributes["brainq.attempt"] for span in spans.named("execute_tool")] == [2]
    (rescue,) = [span for span in spans.named("brainq.rescue") if span.attributes["brainq.did"] == "again"]
    assert rescue.events == ("brainq.lease.lapsed",)
    assert rescue.links == (call_span_id(turn.turn_id, "c1-0", 1),)
    said = [line for line in logged(traced) if line["event"] == "call rescued" and line["turn_id"] == turn.turn_id]
    assert [line["trace_id"] for line in said] == [f"{rescue.trace_id:032x}"]
    assert [line["span_id"] for line in said] == [f"{rescue.span_id:016x}"]


def test_a_killed_writer_is_unknown_in_the_trace(traced: World, collector: Collector, producer: Recorder) -> None:
    turn = traced.client.submit("s-write", script([("write", {"name": "a", "gate": "w"})], final="done"))
    traced.kill_the("serial", started(turn, name="a")["pid"])
    open_gate("w")
    assert turn.result(timeout_s=60).text == "done"
    assert traced.status(turn) == TraceStatus.UNKNOWN, "the kill has fired"
    spans = tree(traced, collector, producer, turn, chat=2, **{"brainq.rescue": 1})
    assert spans.named("execute_tool") == []
    (rescue,) = [span for span in spans.named("brainq.rescue") if span.attributes["brainq.did"] == "settled"]
    assert (rescue.attributes["brainq.call.outcome"], rescue.is_error) == ("unknown", True)


def test_a_killed_coordinator_leaves_one_trace(traced: World, collector: Collector, producer: Recorder) -> None:
    turn = traced.client.submit("s-think", script([("read", {"name": "a"})], final="done", gate="m"))
    asked = wait_until(lambda: notes("thinking", turn=turn.turn_id), "the model was asked")[0]
    traced.kill_the("coordinator", asked["pid"])
    open_gate("m")
    assert turn.result(timeout_s=60).text == "done"
    spans = tree(traced, collector, producer, turn, chat=2, execute_tool=1)
    first = spans.named("brainq.advance")[0]
    assert first.events == ("brainq.lease.lapsed",), "the kill has fired"
    chats = [(span.attributes["brainq.step"], span.attributes["brainq.attempt"]) for span in spans.named("chat")]
    assert chats == [(1, 2), (2, 1)]


def test_a_foreign_producers_header_is_gone_on_from(traced: World, collector: Collector) -> None:
    producer = place_at(0xA1, 0xB2)
    app = make_app(traced.settings)
    try:
        app.send_task(
            TURN_SUBMIT,
            kwargs={"turn_id": "foreign-1", "session_id": "s-foreign", "user_message": script(final="done")},
            headers={"traceparent": traceparent_of(producer)},
        )
    finally:
        app.close()
    turn = wait_until(lambda: accepted(traced, "foreign-1"), "it was accepted")
    assert turn is not None
    assert turn.result(timeout_s=60).text == "done"
    mine = wait_until(lambda: collector.spans.of_turn("foreign-1").named("invoke_agent"), "it was recorded")
    submit = wait_until(lambda: collector.spans.of_turn("foreign-1").named("brainq.submit"), "the submit, too")
    assert {span.trace_id for span in (*mine, *submit)} == {producer.trace_id}
    assert [span.parent_id for span in submit] == [producer.span_id]
    assert [span.parent_id for span in mine] == [submit[0].span_id]


def accepted(world: World, turn_id: str) -> TurnHandle | None:
    try:
        return world.client.handle(turn_id)
    except TurnNotFound:
        return None
