"""Beside the steps: the opening wave, reflections, compactions, the tools a turn is shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from brainq import Brain, Effect, Limits, RunContext, ScriptedProvider
from brainq.contracts.brain import Context, Memory, Selection
from brainq.contracts.event import EventKind
from brainq.contracts.memory import RetrievedMemory
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.engine.models.scripted import Rules, ScriptedFailure, calls, fails, says
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]


class Recall:
    """A retriever that finds what it is told, waits at a gate, or raises."""

    def __init__(self, found: RetrievedMemory, *, fail: bool = False) -> None:
        self.found = found
        self.fail = fail
        self.asked: list[tuple[str, str]] = []

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        self.asked.append((query, session_id))
        if self.fail:
            raise RuntimeError("the memory is away")
        return self.found


FOUND = RetrievedMemory(text="- has a cat", preferences=("short answers",), habits=("asks on Mondays",))


class Watched:
    """A model that follows a script and keeps what it was shown."""

    def __init__(self, *replies: ModelReply, auxiliary: Rules | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = replies
        self.provider = ScriptedProvider(rules=self._rules, auxiliary=auxiliary)

    def _rules(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return self._replies[min(request.step, len(self._replies)) - 1]

    def shown(self, step: int) -> Sequence[Message]:
        return next(request.messages for request in self.requests if request.step == step)


def with_pack(brain: Brain, *, preferences: list[Any], gate: threading.Event | None = None) -> Brain:
    @brain.tool(effect=Effect.READ_ONLY, timeout_s=5)
    def get_context_pack(topic: str, context: RunContext) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
        """Context.

        Args:
            topic: words
        """
        if gate is not None:
            gate.wait(60)
        context.cite_local("notes/a.md")
        return {"topic": topic, "preferences": preferences, "relevant_facts": ["cats sleep a lot"]}

    return brain


def test_memory_and_pack_are_read_side_by_side_before_the_first_step(pumps: Pumps) -> None:
    model, recall = Watched(says("It sleeps.")), Recall(FOUND)
    brain = Brain("b", model.provider, "You help.", memory=Memory(recall, None, None))
    pump = pumps(with_pack(brain, preferences=["Short  answers", "tea"]))
    handle = pump.submit("s1", "What does my cat do?")
    pump.drain("brainq.turns")
    assert [bell.args[2] for bell in pump.waiting()] == ["c0-0", "c0-1"]
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    assert recall.asked == [("What does my cat do?", "s1")]
    texts = [(message.role, message.content) for message in model.shown(1)]
    assert [role for role, _ in texts] == ["system", "user", "user", "user"]
    assert texts[0][1].startswith("You help.")
    assert "has a cat" in texts[1][1]
    assert "cats sleep a lot" in texts[2][1]
    assert "UNTRUSTED" in texts[2][1]
    assert texts[3][1] == "What does my cat do?"
    pack = json.loads(result.context_pack_json or "")
    assert pack["preferences"] == ["Short  answers", "tea", "asks on Mondays"]
    assert (result.tool_calls, result.steps) == (0, 1)
    decision = pump.wiring.store.decisions.get(handle.turn_id)
    assert decision is not None
    assert (decision.strategy, decision.tools) == ("direct_answer", ())


def test_the_pack_asked_for_by_the_model_is_retrieval(pumps: Pumps) -> None:
    model = Watched(calls(("get_context_pack", {"topic": "cats"})), says("ok"))
    pump = pumps(with_pack(Brain("b", model.provider), preferences=[]))
    handle = pump.submit("s1", "cats?")
    assert pump.finish(handle).tool_calls == 1
    decision = pump.wiring.store.decisions.get(handle.turn_id)
    assert decision is not None
    assert decision.strategy == "retrieval_augmented"


def test_a_memory_that_fails_fails_no_turn(pumps: Pumps) -> None:
    model = Watched(says("ok"))
    brain = Brain("b", model.provider, memory=Memory(Recall(FOUND, fail=True), None, None))
    pump = pumps(with_pack(brain, preferences=["tea"]))
    handle = pump.submit("s1", "hello")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "ok")
    assert json.loads(result.context_pack_json or "")["preferences"] == ["tea"]
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert [entry.status for entry in snapshot.trace] == [TraceStatus.FAILED, TraceStatus.COMPLETED]


def test_a_pack_that_is_late_is_not_waited_for(pumps: Pumps) -> None:
    """Its worker holds it and beats; the sweeper lets the turn go on, and what comes later changes nothing."""
    gate, model = threading.Event(), Watched(says("ok"))
    brain = Brain("b", model.provider, context=Context(opening_s=2.0))
    pump = pumps(with_pack(brain, preferences=[], gate=gate), lease_s=60.0)
    handle = pump.submit("s1", "hello")
    pump.drain("brainq.turns")
    bell = pump.take()
    assert bell is not None

    def statuses() -> list[TraceStatus]:
        snapshot = handle.snapshot()
        return [] if snapshot is None else [entry.status for entry in snapshot.trace]

    running = threading.Thread(target=pump.answer, args=(bell,))
    running.start()
    try:
        wait_until(lambda: statuses() == [TraceStatus.RUNNING], "its worker holds it")
        result = pump.finish(handle)
    finally:
        gate.set()
        running.join(60)
    assert (result.ending, result.context_pack_json) == (Ending.COMPLETED, None)
    assert [message.role for message in model.shown(1)] == ["system", "user"]
    wait_until(lambda: statuses() == [TraceStatus.TIMED_OUT_LATE], "the late pack is recorded as late")
    assert handle.result().context_pack_json is None


def test_an_opening_that_no_worker_takes_is_not_waited_for(pumps: Pumps) -> None:
    model = Watched(says("ok"))
    brain = Brain("b", model.provider, memory=Memory(Recall(FOUND), None, None), context=Context(opening_s=0.1))
    pump = pumps(brain)
    handle = pump.submit("s1", "hello")
    pump.drain("brainq.turns")
    pump.take()
    result = pump.finish(handle)
    assert (result.ending, result.context_pack_json) == (Ending.COMPLETED, None)


def failing_tool(brain: Brain) -> Brain:
    @brain.tool(effect=Effect.READ_ONLY)
    def look(place: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look.

        Args:
            place: where
        """
        if place == "nowhere":
            raise ValueError("there is no such place")
        return "a lamp"

    return brain


LOOKS = (calls(("look", {"place": "nowhere"})), calls(("look", {"place": "here"})), says("a lamp"))


def reviewer(request: ModelRequest) -> ModelReply:
    assert request.purpose == "reflection"
    assert "no such place" in request.messages[-1].content
    return says("Look here instead.", usage=TokenUsage(input_tokens=50, output_tokens=5))


def test_a_failed_call_is_reflected_on_once(pumps: Pumps) -> None:
    model = Watched(*LOOKS, auxiliary=reviewer)
    pump = pumps(failing_tool(Brain("b", model.provider, thinking="low")))
    handle = pump.submit("s1", "What is there?")
    result = pump.finish(handle)
    assert (result.ending, result.text, result.steps) == (Ending.COMPLETED, "a lamp", 3)
    assert "Look here instead." in model.shown(2)[-1].content
    kinds = [spend.kind for spend in result.spends]
    assert kinds == ["step", "reflection", "step", "step"]
    assert result.input_tokens == sum(spend.input_tokens for spend in result.spends)
    events = [event.data for event in handle.events() if event.kind is EventKind.REFLECTION]
    assert events == [{"step": 1, "stub": ""}]
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.budget.reflections_used == 1


def unable(_: ModelRequest) -> ScriptedFailure:
    return fails("server")


@pytest.mark.parametrize("auxiliary", [None, unable], ids=["no model", "failing"])
def test_a_model_that_cannot_reflect_ends_no_turn(pumps: Pumps, auxiliary: Rules | None) -> None:
    model = Watched(*LOOKS, auxiliary=auxiliary)
    pump = pumps(failing_tool(Brain("b", model.provider, thinking="medium")))
    handle = pump.submit("s1", "What is there?")
    assert pump.finish(handle).text == "a lamp"
    events = [event.data for event in handle.events() if event.kind is EventKind.REFLECTION]
    assert events == [{"step": 1, "stub": "model"}]


def test_without_a_reflection_left_the_turn_goes_on(pumps: Pumps) -> None:
    model = Watched(*LOOKS, auxiliary=reviewer)
    brain = Brain("b", model.provider, thinking="high", limits=Limits(max_reflections=0))
    pump = pumps(failing_tool(brain))
    result = pump.finish(pump.submit("s1", "What is there?"))
    assert result.text == "a lamp"
    assert {spend.kind for spend in result.spends} == {"step"}


def test_a_worker_that_dies_while_reflecting_does_not_reflect_again(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Watched(*LOOKS, auxiliary=reviewer)
    pump = pumps(failing_tool(Brain("b", model.provider, thinking="low")))
    turns = pump.wiring.state.turns
    died: list[str] = []

    def dies(*_: Any) -> bool:
        died.append("here")
        raise SystemExit  # as if the process went: nothing is committed, the lease lapses

    handle = pump.submit("s1", "What is there?")
    with monkeypatch.context() as patched:
        patched.setattr(turns, "commit_note", dies)
        with pytest.raises(SystemExit):
            pump.drain()
    result = pump.finish(handle)
    assert (result.text, died) == ("a lamp", ["here"])
    assert [spend.kind for spend in result.spends] == ["step", "lost", "step", "step"]
    assert result.input_tokens == sum(spend.input_tokens for spend in result.spends)


def of_shelves(model: Watched) -> tuple[Brain, list[int]]:
    """A brain whose window is full after a few looks at shelves, and the shelves that were looked at."""
    limits = Limits(max_steps=20, max_tool_calls=20, max_context_tokens=2000)
    brain = Brain("b", model.provider, "Find it.", limits=limits)
    looked: list[int] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def shelf(number: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a shelf.

        Args:
            number: which
        """
        looked.append(number)
        return f"shelf {number}: " + "dust " * 200

    return brain, looked


def test_a_full_context_is_compacted_and_sql_keeps_all(pumps: Pumps) -> None:
    """Long results over many steps stay under the window; the summary says what went before."""

    def summarise(request: ModelRequest) -> ModelReply:
        assert request.purpose == "compaction"
        return says("Looked at many shelves; all were empty.")

    model = Watched(*(calls(("shelf", {"number": n})) for n in range(12)), says("nothing"), auxiliary=summarise)
    brain, _ = of_shelves(model)
    pump = pumps(brain)
    handle = pump.submit("s1", "Where is the lamp?")
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason, result.text) == (Ending.COMPLETED, StopReason.ANSWERED, "nothing")
    compacted = [event.data for event in handle.events() if event.kind is EventKind.COMPACTION]
    assert compacted
    assert all(event["method"] == "model" for event in compacted)
    last = model.shown(13)
    assert sum("all were empty" in message.content for message in last) == 1
    assert sum(message.content == "Where is the lamp?" for message in last) == 1
    asked = [call.id for message in last for call in message.calls]
    assert asked == [message.call_id for message in last if message.role == "tool"]
    assert len(asked) < 12
    kept = pump.wiring.store.transcripts.of_turn(handle.turn_id)
    assert [message.call_id for message in kept if message.role == "tool"] == [f"c{n}-0" for n in range(1, 13)]
    assert pump.client.state("s1", handle.turn_id).context_was_compacted


def test_a_brain_with_many_tools_shows_a_turn_the_same_few(pumps: Pumps) -> None:
    model = Watched(calls(("water_the_plants", {"room": "attic"})), says("done"))
    brain = Brain("b", model.provider, selection=Selection(max_tools_per_turn=3, pinned=("pinned_one",)))

    def add(name: str, about: str) -> None:
        def tool(room: str) -> str:
            return "ok"

        tool.__doc__ = f"{about}\n\nArgs:\n    room: which room"
        brain.tool(effect=Effect.READ_ONLY, name=name)(tool)

    for name in ("pinned_one", "water_the_plants", "open_the_window", "play_some_music", "feed_the_fish"):
        add(name, f"{name.replace('_', ' ').capitalize()}.")
    pump = pumps(brain)
    pump.finish(pump.submit("s1", "Please water my plants in the attic"))
    shown = [[spec.name for spec in request.tools] for request in model.requests]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 3
    assert {"pinned_one", "water_the_plants"} <= set(shown[0])


def test_what_a_compaction_took_away_may_be_read_again(pumps: Pumps) -> None:
    asked = [calls(("shelf", {"number": n})) for n in range(12)]
    model = Watched(*asked, calls(("shelf", {"number": 0})), says("dust"), auxiliary=lambda _: says("so far"))
    brain, looked = of_shelves(model)
    pump = pumps(brain)
    handle = pump.submit("s1", "Where is the lamp?")
    assert pump.finish(handle).text == "dust"
    assert looked.count(0) == 2


def test_a_context_that_sql_does_not_keep_is_not_compacted(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(*(calls(("shelf", {"number": n})) for n in range(8)), says("dust"), auxiliary=lambda _: says("x"))
    brain, _ = of_shelves(model)
    pump = pumps(brain)

    def away(*_: Any) -> None:
        raise ConnectionError("SQL is away")

    monkeypatch.setattr(pump.wiring.store.transcripts, "archive", away)
    handle = pump.submit("s1", "Where is the lamp?")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "dust")
    assert not pump.client.state("s1", handle.turn_id).context_was_compacted
    monkeypatch.undo()


def test_a_memory_that_hangs_leaves_a_short_turn_time_to_answer(pumps: Pumps) -> None:
    gate, model = threading.Event(), Watched(says("ok"))
    pump = pumps(with_pack(Brain("b", model.provider), preferences=[], gate=gate), lease_s=5.0)
    handle = pump.submit("s1", "hello", limits={"timeout_s": 8.0})
    pump.drain("brainq.turns")
    bell = pump.take()
    assert bell is not None
    running = threading.Thread(target=pump.answer, args=(bell,))
    running.start()
    try:
        assert pump.finish(handle).ending is Ending.COMPLETED
    finally:
        gate.set()
        running.join(60)


def test_a_ranker_that_raises_leaves_the_tools_ranked_by_words(pumps: Pumps) -> None:
    class Broken:
        def rank(self, query: str, specs: Sequence[Any]) -> list[float]:
            raise RuntimeError("no vectors")

    model = Watched(says("ok"))
    brain = Brain("b", model.provider, selection=Selection(max_tools_per_turn=1, ranking=Broken()))
    for name in ("feed_the_fish", "water_the_plants"):
        brain.tool(effect=Effect.READ_ONLY, name=name, description=name.replace("_", " "))(lambda: "ok")
    pump = pumps(brain)
    assert pump.finish(pump.submit("s1", "water the plants")).text == "ok"
    assert [spec.name for spec in model.requests[0].tools] == ["water_the_plants"]


def test_a_limit_that_is_used_up_is_said_in_the_history(pumps: Pumps) -> None:
    used = TokenUsage(input_tokens=1000)
    model = Watched(calls(("look", {"place": "here"}), usage=used), says("never"))
    pump = pumps(failing_tool(Brain("b", model.provider)))
    result = pump.finish(pump.submit("s1", "What is there?", limits={"max_total_tokens": 1050}))
    assert (result.stop_reason, result.steps) == (StopReason.MAX_TOTAL_TOKENS, 1)
    client: Any = pump.wiring.state.redis
    last = json.loads(client.lindex(pump.wiring.state.keys.of_session("s1", "history"), -1))
    assert (last["role"], last["content"]) == ("assistant", result.text)


def test_a_model_call_that_is_cut_off_is_charged_as_estimated(pumps: Pumps) -> None:
    pump = pumps(Brain("b", ScriptedProvider([says("late")], latency_s=60.0)), lease_s=60.0)
    result = pump.finish(pump.submit("s1", "hello", limits={"timeout_s": 2}))
    assert result.ending is Ending.TIMED_OUT
    assert [(spend.kind, spend.step) for spend in result.spends] == [("lost", 1)]
    assert result.input_tokens == result.spends[0].input_tokens > 0
