"""Redis out of reach while a model answers: the turn waits, its reply is kept, and the model is asked once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from brainq import Brain, Effect, ScriptedProvider
from brainq.adapters.redis import connection
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import calls, says
from brainq.engine.turn import text_stream
from tests.support.proxy import Proxy
from tests.support.pump import Pump, sqlite_url

WORDS = "one two three four five six seven eight nine ten"
Fault = Callable[[Proxy], None]


class Streaming(ScriptedProvider):
    """`at` says what happens before which word."""

    def __init__(self, *replies: ModelReply) -> None:
        super().__init__(list(replies))
        self.asked: list[tuple[int, int]] = []
        self.turn_id = ""
        self.at: dict[int, Callable[[], None]] = {}
        self.done: Callable[[], None] = lambda: None

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self.asked.append((request.step, request.attempt))
        self.turn_id = request.turn_id
        for number, chunk in enumerate(super().generate_stream(request)):
            if chunk.reply is not None:
                self.done()
            elif number in self.at:
                self.at[number]()
            yield chunk


class Stage:
    """A worker that reaches Redis through a proxy only, and another process that reaches it directly."""

    def __init__(self, directory: Path, redis_url: str, proxy: Proxy, *replies: ModelReply) -> None:
        self.model = Streaming(*replies or (says(WORDS),))
        self.brain = Brain("stage", self.model, "Speak.")
        self.ran: list[str] = []

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def write(name: str) -> str:
            self.ran.append(name)
            return "ok"

        self.proxy = proxy
        sql_url = sqlite_url(directory)
        # A long lease: whether somebody else takes the turn is up to each test.
        self.outside = Pump(self.brain, redis_url, sql_url, owner="outside", lease_s=30.0)
        self.worker = Pump(self.brain, f"redis://127.0.0.1:{proxy.port}/0", sql_url, owner="worker", lease_s=30.0)

    def think(self, fault_at: dict[int, Fault], done: Fault | None = None) -> Any:
        """One turn whose steps the worker makes, with these faults before these words, and `done` behind the last."""
        self.model.at = {number: lambda fault=fault: fault(self.proxy) for number, fault in fault_at.items()}
        self.model.done = lambda: done(self.proxy) if done else None
        handle = self.outside.submit("s1", "Count.")
        bell = self.outside.take("brainq.turns")
        assert bell is not None
        self.worker.answer(bell)
        return handle

    def close(self) -> None:
        self.proxy.come_back()
        self.proxy.thaw()
        self.worker.close()
        self.outside.close()


@pytest.fixture
def stages(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    monkeypatch.setattr(connection, "SOCKET_TIMEOUT_S", 1.5)
    monkeypatch.setattr(text_stream, "DELTA_EVERY_S", 0.0)  # each word is published by itself
    made: list[Stage] = []
    with Proxy(address_of(redis_url)) as proxy:

        def make(*replies: ModelReply) -> Stage:
            made.append(Stage(tmp_path, redis_url, proxy, *replies))
            return made[-1]

        yield make
        for stage in made:
            stage.close()


def address_of(redis_url: str) -> tuple[str, int]:
    host, _, port = redis_url.removeprefix("redis://").partition("/")[0].partition(":")
    return host, int(port)


def soon(work: Callable[[], None]) -> None:
    """Later than one command may take, from another thread."""
    threading.Timer(2.0, work).start()


def told(handle: Any) -> str:
    """The text as a reader puts it together from its events."""
    deltas = [event.data for event in handle.events() if event.kind is EventKind.TEXT_DELTA]
    assert {delta["attempt"] for delta in deltas} == {1}
    return "".join(delta["text"] for delta in deltas)


FAULTS: dict[str, tuple[dict[int, Fault], Fault | None, str]] = {
    "one reset": ({3: Proxy.reset}, None, "resets"),
    "resets again and again": (dict.fromkeys((2, 4, 6, 8), Proxy.reset), None, "resets"),
    "a reset before the commit": ({}, Proxy.reset, "resets"),
    "away until after the reply": ({3: Proxy.go_away}, lambda proxy: soon(proxy.come_back), "refused"),
    "frozen until after the reply": ({3: Proxy.freeze}, lambda proxy: soon(proxy.thaw), ""),
    "replies of deltas dropped": ({3: lambda proxy: proxy.swallow_replies(2)}, None, "swallowed"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_trouble_with_redis_while_text_streams_costs_the_turn_nothing(
    stages: Callable[..., Stage], fault: tuple[dict[int, Fault], Fault | None, str]
) -> None:
    stage = stages()
    at, done, fired = fault
    handle = stage.think(at, done)
    result = stage.outside.finish(handle)

    assert (result.ending, result.stop_reason, result.text) == (Ending.COMPLETED, StopReason.ANSWERED, WORDS)
    assert stage.model.asked == [(1, 1)], "the model is asked once, and paid once"
    assert [spend.kind for spend in result.spends] == ["step"]
    assert told(handle) == WORDS, "each word is told once"
    if fired:
        assert getattr(stage.proxy, fired) > 0


def test_a_reply_that_asks_for_calls_is_kept_too(stages: Callable[..., Stage]) -> None:
    stage = stages(calls(("write", {"name": "a"}), text="I write it."), says("Done."))
    handle = stage.think({1: Proxy.go_away}, lambda proxy: soon(proxy.come_back))
    stage.model.done = lambda: None
    result = stage.outside.finish(handle)

    assert stage.proxy.refused > 0
    assert (result.text, stage.ran) == ("Done.", ["a"])
    assert stage.model.asked == [(1, 1), (2, 1)]


def test_a_commit_whose_answer_was_lost_is_made_once(stages: Callable[..., Stage]) -> None:
    stage = stages(calls(("write", {"name": "a"}), text="I write it."), says("Done."))
    handle = stage.think({}, lambda proxy: proxy.swallow_replies(1))
    stage.model.done = lambda: None
    result = stage.outside.finish(handle)

    assert stage.proxy.swallowed == 1
    assert (result.text, stage.ran, result.steps) == ("Done.", ["a"], 2)
    assert stage.model.asked == [(1, 1), (2, 1)]


def test_redis_is_waited_for_before_the_model_is_asked(stages: Callable[..., Stage]) -> None:
    stage = stages()
    begun: list[str] = []

    def on_turn_start(info: Any) -> None:
        begun.append(info.turn_id)
        stage.proxy.go_away()
        soon(stage.proxy.come_back)

    stage.brain.on_turn_start(on_turn_start)
    handle = stage.think({})
    result = stage.outside.finish(handle)

    assert stage.proxy.refused > 0
    assert begun == [handle.turn_id]
    assert (result.text, stage.model.asked) == (WORDS, [(1, 1)])


def test_a_step_that_was_begun_and_whose_answer_was_lost_is_begun_once(stages: Callable[..., Stage]) -> None:
    stage = stages()
    turns: Any = stage.worker.wiring.state.turns
    begin_step = turns.begin_step

    def dropped(*given: Any) -> Any:
        if not stage.proxy.swallowed:
            stage.proxy.swallow_replies(1)
        return begin_step(*given)

    turns.begin_step = dropped
    handle = stage.think({})
    result = stage.outside.finish(handle)

    assert stage.proxy.swallowed == 1
    assert (result.text, stage.model.asked, result.steps) == (WORDS, [(1, 1)], 1)
    assert [spend.kind for spend in result.spends] == ["step"]


def test_a_turn_that_another_worker_took_meanwhile_is_lost_to_the_first(stages: Callable[..., Stage]) -> None:
    stage = stages()
    taken: list[str] = []

    def take_over(proxy: Proxy) -> None:
        stage.model.done = lambda: None
        stage.model.at = {}
        proxy.go_away()
        client: Any = stage.outside.wiring.state.redis
        key = stage.outside.wiring.state.keys.turn("s1", stage.model.turn_id)
        client.hset(key, "lease_until", 1)  # as if the lease had lapsed
        stage.outside.sweep()
        bell = stage.outside.take("brainq.turns")
        assert bell is not None
        taken.append(stage.outside.answer(bell))
        proxy.come_back()

    handle = stage.think({}, take_over)
    assert stage.worker.bells[-1][1] == "lost"
    result = stage.outside.finish(handle)

    assert taken == ["ended: completed (answered)"]
    assert (result.text, stage.model.asked) == (WORDS, [(1, 1), (1, 2)])


def test_what_the_model_raises_is_still_the_models(stages: Callable[..., Stage]) -> None:
    stage = stages()

    def broken() -> None:
        raise redis.ConnectionError("of the provider's own Redis")

    stage.model.at = {}
    stage.model.done = broken
    handle = stage.outside.submit("s1", "Count.")
    result = stage.outside.finish(handle)

    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.MODEL_ERROR)
    assert result.error == "provider 'scripted' raised ConnectionError"
