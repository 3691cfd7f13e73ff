"""One submit is one trace, whoever works on it, and nothing of what is said is in it."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from opentelemetry import trace

from brainq.adapters.celery import names
from brainq.contracts.brain import Memory, PromptTemplate
from brainq.contracts.call import ChildTurn
from brainq.contracts.claim import CallClaim, CallRef, FinalStepClaim
from brainq.contracts.ids import child_turn_id
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Effect, Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, calls, fails, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.runtime.observe.spans import set_parent_context
from brainq.runtime.observe.tracing import call_span_id, read_traceparent
from tests.integration.engine.test_engine_deadline import time_passes
from tests.support.parts import Extractor, Tone, brain_of, forget, pump_of, run_turn, runner_of
from tests.support.people import Pumps, swept_until
from tests.support.pump import Pump
from tests.support.spans import Recorder, recording
from tests.support.wait import wait_until

SECRET = "hunter2"
PRODUCER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def recorder() -> Generator[Recorder]:
    with recording() as found:
        yield found


class Everything:
    """A brain of which one turn reads, writes, fails, waits for somebody outside, and asks a child."""

    def __init__(self, **options: Any) -> None:
        self.brain = Brain("shop", ScriptedProvider(rules=self._rules), **options)
        self.tokens: list[str] = []

        @self.brain.tool(effect=Effect.READ_ONLY)
        def look(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Look."""
            return f"saw {what}"

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def write(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            raise ValueError(f"no room for {what}")

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def order(context: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Order."""
            self.tokens.append(context.outside_token())
            return Pending(self.tokens[-1])

        @self.brain.tool(effect=Effect.READ_ONLY)
        def ask(message: str) -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
            """Ask another."""
            return ChildTurn(message)

    def _rules(self, request: ModelRequest) -> ModelReply | ScriptedFailure:
        said = [m.content for m in request.messages if m.role == "user"][-1]
        match said.split()[0], request.step:
            case "all", 1:
                return calls(("look", {"what": SECRET}), ("write", {"what": SECRET}))
            case "all", 2:
                return fails("stream", attempts=1, then=calls(("order", {})))
            case "all", 3:
                return calls(("ask", {"message": "leaf"}))
            case "fail", _:
                return fails("refused", retryable=False, message=SECRET)
            case "read", 1:
                return calls(("look", {"what": SECRET}))
            case _:
                return says(f"done {SECRET}")


def whole_turn(pumps: Pumps, **options: Any) -> tuple[Pump, Any]:
    every = Everything()
    pump = pumps(every.brain)
    handle = pump.submit("acme:1", f"all {SECRET}", **options)
    pump.drain()
    pump.client.complete_call(every.tokens[0], "ordered")
    pump.drain()
    assert handle.result(1.0).ending is Ending.COMPLETED
    return pump, handle


def test_a_turn_is_one_tree_below_its_submit(pumps: Pumps, recorder: Recorder) -> None:
    _, handle = whole_turn(pumps)
    spans = recorder.spans
    assert spans.orphans() == []
    assert len(spans.traces()) == 1
    submit = spans.one("brainq.submit")
    mine = spans.of_turn(handle.turn_id)
    (agent,) = [span for span in mine.named("invoke_agent") if span.parent_id == submit.span_id]
    for name in ("brainq.advance", "execute_tool", "brainq.finalize"):
        assert {span.parent_id for span in mine.named(name)} == {agent.span_id}
    advances = {span.span_id for span in mine.named("brainq.advance")}
    assert {span.parent_id for span in mine.named("chat")} <= advances
    assert agent.attributes["gen_ai.conversation.id"] == "acme:1"
    assert agent.attributes["brainq.tenant"] == "acme"
    assert agent.attributes["brainq.turn.steps"] == 4
    assert agent.attributes["brainq.turn.tool_calls"] == 4
    assert agent.end_ns >= max(span.end_ns for span in mine.named("chat")) - 5_000_000_000


def test_what_each_span_says(pumps: Pumps, recorder: Recorder) -> None:
    _, handle = whole_turn(pumps)
    mine = recorder.spans.of_turn(handle.turn_id)
    look, write, order, ask = mine.named("execute_tool")
    assert look.attributes["brainq.call.outcome"] == "completed"
    assert look.attributes["brainq.call.effect"] == "read_only"
    assert write.attributes["brainq.call.outcome"] == "failed"
    assert write.attributes["error.type"] == "ValueError"
    assert write.is_error
    assert {order.attributes["brainq.call.outcome"], ask.attributes["brainq.call.outcome"]} == {"parked"}
    assert order.events == ("brainq.call.parked",)
    assert not order.is_error
    attempts = [span.attributes["brainq.attempt"] for span in mine.named("chat") if span.attributes["brainq.step"] == 2]
    assert attempts == [1, 2]
    broken = [span for span in mine.named("chat") if span.is_error]
    assert [span.attributes["error.type"] for span in broken] == ["stream"]
    last = mine.named("chat")[-1]
    assert last.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert last.attributes["gen_ai.provider.name"] == "scripted"
    assert last.attributes["gen_ai.usage.output_tokens"] > 0
    assert all(span.attributes["brainq.queue.wait_ms"] >= 0 for span in mine.named("execute_tool"))
    assert [span.name for span in mine.named("brainq.finalize")][-1] != "brainq.finalize result"


def test_a_turns_spans_name_its_prompt(pumps: Pumps, recorder: Recorder) -> None:
    template = PromptTemplate(id="ask", text="Be of help.", version="7", tags=("sales",))
    pump = pumps(Brain("told", ScriptedProvider([says("Hm.")]), prompts=[template]))
    handle = pump.submit("s1", "Well?", prompt_id="ask")
    pump.finish(handle)
    mine = recorder.spans.of_turn(handle.turn_id)
    for span in (mine.named("invoke_agent")[0], mine.named("brainq.advance")[0], mine.named("chat")[0]):
        assert [span.attributes[f"brainq.prompt.{name}"] for name in ("id", "version")] == ["ask", "7"]
        assert span.attributes["brainq.prompt.tags"] == ("sales",)
    (rendered,) = {mine.named(name)[0].attributes["brainq.prompt.render_hash"] for name in ("invoke_agent", "chat")}
    assert len(rendered) == 16


def test_what_goes_on_after_a_park_is_linked_to_it(pumps: Pumps, recorder: Recorder) -> None:
    _, handle = whole_turn(pumps)
    mine = recorder.spans.of_turn(handle.turn_id)
    linked = {span.attributes["brainq.step"]: span.links for span in mine.named("brainq.advance") if span.links}
    assert linked == {3: (call_span_id(handle.turn_id, "c2-0", 1),), 4: (call_span_id(handle.turn_id, "c3-0", 1),)}


def test_a_child_turn_hangs_below_the_call_that_asked_it(pumps: Pumps, recorder: Recorder) -> None:
    _, handle = whole_turn(pumps)
    child = recorder.spans.of_turn(child_turn_id(handle.turn_id, "c3-0"))
    assert child.one("invoke_agent").parent_id == call_span_id(handle.turn_id, "c3-0", 1)


def test_no_content_is_recorded(pumps: Pumps, recorder: Recorder) -> None:
    _, handle = whole_turn(pumps)
    assert handle.turn_id in recorder.text()
    assert SECRET not in recorder.text()


def test_content_is_recorded_where_somebody_asks_for_it(pumps: Pumps) -> None:
    with recording(content=True) as recorder:
        _, handle = whole_turn(pumps)
        mine = recorder.spans.of_turn(handle.turn_id)
        look = mine.named("execute_tool")[0]
        assert json.loads(look.attributes["gen_ai.tool.call.arguments"]) == {"what": SECRET}
        assert look.attributes["gen_ai.tool.call.result"] == f"saw {SECRET}"
        chat = mine.named("chat")[-1]
        said = json.loads(chat.attributes["gen_ai.output.messages"])
        assert said[0]["parts"] == [{"type": "text", "content": f"done {SECRET}"}]
        assert SECRET in chat.attributes["gen_ai.input.messages"]


def test_not_of_a_brain_that_keeps_its_content_out(pumps: Pumps) -> None:
    with recording(content=True) as recorder:
        pump = pumps(Everything(redact_logs=True).brain)
        handle = pump.submit("s1", f"read {SECRET}")
        pump.drain()
        assert handle.result(1.0).ending is Ending.COMPLETED
        assert recorder.spans.one("execute_tool").attributes["brainq.call.outcome"] == "completed"
        assert SECRET not in recorder.text()


def test_a_turn_goes_on_in_the_trace_its_request_came_with(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    set_parent_context(PRODUCER)
    try:
        pump.submit("s1", "hello")
    finally:
        set_parent_context(None)
    pump.drain()
    place = read_traceparent(PRODUCER)
    assert place is not None
    assert recorder.spans.traces() == {place.trace_id}
    assert recorder.spans.one("brainq.submit").parent_id == place.span_id


def test_a_producer_without_telemetry_hands_its_trace_on(pumps: Pumps) -> None:
    pump = pumps(Everything().brain)
    set_parent_context(PRODUCER)
    try:
        pump.submit("s1", "hello")
    finally:
        set_parent_context(None)
    with recording() as recorder:
        pump.drain()
        place = read_traceparent(PRODUCER)
        assert place is not None
        assert recorder.spans.traces() == {place.trace_id}
        assert recorder.spans.one("invoke_agent").parent_id == place.span_id


def test_a_producers_open_span_is_the_parent(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    with recorder.provider.get_tracer("shop").start_as_current_span("checkout"):
        pump.submit("s1", "hello")
    pump.drain()
    spans = recorder.spans
    assert len(spans.traces()) == 1
    assert spans.one("brainq.submit").parent_id == spans.one("checkout").span_id


def test_a_tools_own_spans_are_below_its_call(pumps: Pumps, recorder: Recorder) -> None:
    brain = Brain("shop", ScriptedProvider([calls(("fetch", {}), ("wait", {})), says("done")]))

    @brain.tool(effect=Effect.READ_ONLY)
    def fetch() -> str:  # pyright: ignore[reportUnusedFunction]
        """Fetch."""
        with recorder.provider.get_tracer("http").start_as_current_span("GET"):
            return "ok"

    @brain.tool(effect=Effect.READ_ONLY)
    async def wait() -> str:  # pyright: ignore[reportUnusedFunction]
        """Fetch on the loop."""
        with recorder.provider.get_tracer("http").start_as_current_span("GET later"):
            return (trace.get_current_span().get_span_context().is_valid and "ok") or "no"

    pump = pumps(brain)
    handle = pump.submit("s1", "hello")
    pump.drain()
    spans = recorder.spans
    assert spans.named("GET")[0].parent_id == call_span_id(handle.turn_id, "c1-0", 1)
    assert spans.one("GET later").parent_id == call_span_id(handle.turn_id, "c1-1", 1)


def test_a_turn_that_fails_is_an_error_of_its_stop_reason(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    pump.submit("s1", "fail")
    pump.drain()
    agent = recorder.spans.one("invoke_agent")
    assert agent.is_error
    assert agent.attributes["error.type"] == agent.attributes["brainq.turn.stop_reason"] == "model_error"
    assert recorder.spans.one("chat").attributes["error.type"] == "refused"
    assert SECRET not in recorder.text()


def test_a_turn_past_its_deadline_is_an_error_of_its_stop_reason(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    handle = pump.submit("s1", "hello", limits={"timeout_s": 20})
    time_passes(pump, handle.turn_id, 30)
    assert pump.finish(handle).ending is Ending.TIMED_OUT
    agent = recorder.spans.one("invoke_agent")
    assert (agent.is_error, agent.attributes["error.type"]) == (True, "deadline")


def test_a_turn_that_never_became_active_has_its_span(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    pump.submit("s1", "hello")
    waiting = pump.submit("s1", "hello")
    waiting.cancel()
    pump.drain()
    assert waiting.result(1.0).ending is Ending.CANCELLED
    mine = recorder.spans.of_turn(waiting.turn_id)
    assert mine.one("invoke_agent").attributes["brainq.turn.ending"] == "cancelled"
    assert recorder.spans.orphans() == []


def test_a_lost_worker_is_seen_in_the_trace(pumps: Pumps, recorder: Recorder) -> None:
    """Its call's span is gone with it; the rescue and the next attempt stand in the same tree."""
    pump = pumps(Everything().brain)
    handle = pump.submit("s1", "read")
    pump.drain("brainq.turns")
    bell = pump.take()
    assert bell is not None
    session_id, turn_id, call_id, attempt = bell.args
    claim = pump.wiring.state.calls.claim(CallRef(session_id, turn_id, call_id), attempt, "dead")
    assert isinstance(claim, CallClaim)
    swept_until(pump, lambda: recorder.spans.named("brainq.rescue"), "the rescue")
    pump.drain()
    assert handle.result(1.0).ending is Ending.COMPLETED
    spans = recorder.spans
    rescue = spans.one("brainq.rescue")
    assert rescue.events == ("brainq.lease.lapsed",)
    assert rescue.attributes["brainq.did"] == "again"
    assert rescue.links == (call_span_id(turn_id, call_id, 1),)
    assert spans.one("execute_tool").attributes["brainq.attempt"] == 2
    assert spans.orphans() == []
    assert len(spans.traces()) == 1


def test_a_lost_finalizer_is_seen_and_the_turn_is_recorded_once(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    pump.ring_each_step()
    handle = pump.submit("s1", "read")
    pump.drain("brainq.turns", "brainq.tools.read_only")
    bell = pump.take("brainq.finalize")
    assert bell is not None
    session_id, turn_id, step = bell.args
    assert isinstance(pump.wiring.state.finals.claim(session_id, turn_id, step, "dead"), FinalStepClaim)

    def healed() -> bool:
        pump.sweep()
        pump.drain()
        return bool(recorder.spans.named("brainq.finalize decision"))

    wait_until(healed, "the chain went on")
    spans = recorder.spans
    (lost,) = [span for span in spans.named("brainq.finalize") if span.events]
    assert (lost.attributes["brainq.finalize.step"], lost.events) == (step, ("brainq.lease.lapsed",))
    assert spans.one("invoke_agent").attributes["brainq.turn.id"] == handle.turn_id
    assert spans.orphans() == []


def test_what_is_run_again_by_hand_is_in_the_turns_trace(pumps: Pumps, recorder: Recorder) -> None:
    failing = Memory(retriever=None, extractor=Extractor(times=2), learner=None)
    pump = pump_of(pumps, brain_of("tone", memory=failing, own=(Tone(times=1),)))
    turn_id = run_turn(pump).turn_id
    assert runner_of(pump, max_tries=1).run("s1", turn_id, "tone") == "dead"
    forget(pump)
    retrier = pump.wiring.step_rerunner
    assert retrier.steps_to_run(turn_id, None) == ["memory", "judge:tone"]
    words = [retrier.run("s1", turn_id, name).word for name in ("memory", "memory", "judge:tone")]
    assert words == ["failed", "done", "done"]
    mine = recorder.spans.of_turn(turn_id)
    tries = [(span.attributes["brainq.tries"], span.is_error) for span in mine.named("brainq.finalize memory")]
    assert tries == [(1, True), (2, True), (3, False)]
    assert {span.parent_id for span in mine.named("brainq.finalize memory")} == {mine.one("invoke_agent").span_id}
    assert len(mine.named("brainq.judge tone")) == 2
    assert recorder.spans.orphans() == []
    assert len(recorder.spans.traces()) == 1


def headers(pump: Pump) -> dict[str, dict[str, Any]]:
    """The headers of all doorbells that wait, by their task, while a whole turn is worked on."""
    found: dict[str, dict[str, Any]] = {}
    client: Any = pump.wiring.state.redis
    while True:
        for queue in names.ALL_QUEUES:
            for text in client.lrange(names.queue_key(pump.settings, queue), 0, -1):
                message = json.loads(text)["headers"]
                found[message["task"]] = message
        bell = pump.take()
        if bell is None:
            return found
        pump.answer(bell)


def test_doorbells_lead_to_the_turns_span(pumps: Pumps, recorder: Recorder) -> None:
    """For instrumentations of Celery: what they record of a task is in the turn's trace, too."""
    pump = pumps(Everything().brain)
    handle = pump.submit("s1", "read")
    rung = headers(pump)
    agent = recorder.spans.of_turn(handle.turn_id).one("invoke_agent")
    assert set(rung) == {names.TURN_ADVANCE, names.CALL_RUN, names.FINALIZE_STEP}
    leads = {message["traceparent"] for message in rung.values()}
    assert leads == {f"00-{agent.trace_id:032x}-{agent.span_id:016x}-01"}


def test_without_telemetry_they_have_no_such_header(pumps: Pumps) -> None:
    pump = pumps(Everything().brain)
    set_parent_context(PRODUCER)
    try:
        pump.submit("s1", "read")
    finally:
        set_parent_context(None)
    rung = headers(pump)
    assert set(rung) == {names.TURN_ADVANCE, names.CALL_RUN, names.FINALIZE_STEP}
    assert not any("traceparent" in message for message in rung.values())


def test_what_a_producer_samples_out_is_not_recorded(pumps: Pumps, recorder: Recorder) -> None:
    pump = pumps(Everything().brain)
    set_parent_context(PRODUCER[:-2] + "00")
    try:
        handle = pump.submit("s1", "read")
    finally:
        set_parent_context(None)
    pump.drain()
    assert handle.result(1.0).ending is Ending.COMPLETED
    assert recorder.spans.names == []


def test_another_traceparent_is_no_other_content(pumps: Pumps) -> None:
    pump = pumps(Everything().brain)
    for flags in ("00", "01"):
        set_parent_context(PRODUCER[:-2] + flags)
        handle = pump.submit("s1", "hello", request_key="once")
    set_parent_context(None)
    assert not handle.created
