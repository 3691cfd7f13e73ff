"""Middleware: in which order its methods are called, and what becomes of the work when one of them raises."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.callbacks import Deny, PostToolUse, PreToolUse, StreamChunk, TurnEnd, TurnInfo
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.middleware import METHODS, CallStart, FinalStepInfo, Middleware
from brainq.engine.models.scripted import ScriptedProvider, calls, fails, says
from brainq.errors import InvalidInput, ProviderError
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
SECRET = "hunter2"


class Noting(Middleware):
    """Notes what is called. `raises`: the methods that raise, each as often as it says."""

    def __init__(self, name: str, notes: list[str], **raises: int) -> None:
        self._name, self._notes, self._raises = name, notes, raises

    def _note(self, method: str, what: str = "") -> None:
        self._notes.append(f"{self._name}.{method} {what}".strip())
        if self._raises.get(method, 0) > 0:
            self._raises[method] -= 1
            raise ValueError(SECRET)

    def before_turn(self, turn: TurnInfo) -> None:
        self._note("before_turn", turn.user_message)

    def after_turn(self, end: TurnEnd) -> None:
        self._note("after_turn", end.result.ending)

    async def before_step(self, request: ModelRequest) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._note("before_step", f"{request.step}.{request.attempt}")

    def on_chunk(self, chunk: StreamChunk) -> None:
        self._note("on_chunk", chunk.text)

    def after_step(self, request: ModelRequest, reply: ModelReply | None, failure: ProviderError | None) -> None:
        came = failure.kind if failure is not None else "reply" if reply is not None else "nothing"
        self._note("after_step", f"{request.step}.{request.attempt} {came}")

    def check_call(self, call: PreToolUse) -> Any:
        self._note("check_call", f"{call.call.name} {call.call.arguments}")
        if call.call.name == "forbidden":
            return Deny("not today")
        return {"name": f"{call.call.arguments['name']}+{self._name}"} if call.call.name == "read" else None  # type: ignore[index]

    def before_call(self, call: CallStart) -> None:
        self._note("before_call", f"{call.call.name} {call.call.arguments} {call.attempt}")

    def after_call(self, call: PostToolUse) -> None:
        self._note("after_call", f"{call.call.name} {call.outcome.kind}")

    def before_final_step(self, step: FinalStepInfo) -> None:
        self._note("before_final_step", step.name)

    def after_final_step(self, step: FinalStepInfo, failure: Exception | None) -> None:
        self._note("after_final_step", step.name)


class Shop:
    """A brain of which a turn makes the given calls, and then answers."""

    def __init__(self, *replies: Any, middleware: Any = (), **options: Any) -> None:
        self.ran: list[str] = []
        self.trace: list[tuple[str, TraceStatus]] = []
        provider = ScriptedProvider([*replies, says("done")])
        self.brain = Brain("shop", provider, middleware=middleware, memory=None, **options)
        for name, effect in (("read", Effect.READ_ONLY), ("write", Effect.LOCAL_WRITE), ("forbidden", Effect.NETWORK)):
            self.brain.tool(effect=effect, name=name)(self._function(name))

    def _function(self, tool: str) -> Callable[[str], str]:
        def work(name: str) -> str:
            self.ran.append(f"{tool} {name}")
            return f"{tool} {name} ok"

        return work

    def turn(self, pumps: Pumps) -> TurnResult:
        pump = pumps(self.brain)
        handle = pump.submit("s1", "hello")
        result = pump.finish(handle)
        self.trace = [(entry.tool, entry.status) for entry in pump.wiring.store.traces.of_turn(handle.turn_id)]
        return result


def noting(notes: list[str], name: str) -> Callable[[object], None]:
    return lambda given: notes.append(name)


def test_those_before_run_in_order_and_those_after_in_reverse(pumps: Pumps) -> None:
    notes: list[str] = []
    shop = Shop(
        calls(("read", {"name": "x"})),
        middleware=[Noting("a", notes), Noting("b", notes)],
        callbacks={name: noting(notes, name) for name in ("on_turn_start", "on_post_tool_use", "on_turn_end")},
    )
    assert shop.turn(pumps).ending is Ending.COMPLETED
    assert shop.ran == ["read x+a+b"], "each is shown the arguments as the one before it wants them"
    around = [note for note in notes if "final_step" not in note and "on_chunk" not in note]
    assert around == [
        *("a.before_turn hello", "b.before_turn hello", "on_turn_start"),
        *("a.before_step 1.1", "b.before_step 1.1", "b.after_step 1.1 reply", "a.after_step 1.1 reply"),
        *("a.check_call read {'name': 'x'}", "b.check_call read {'name': 'x+a'}"),
        *("a.before_call read {'name': 'x+a+b'} 1", "b.before_call read {'name': 'x+a+b'} 1"),
        *("on_post_tool_use", "b.after_call read success", "a.after_call read success"),
        *("a.before_step 2.1", "b.before_step 2.1", "b.after_step 2.1 reply", "a.after_step 2.1 reply"),
        *("on_turn_end", "b.after_turn completed", "a.after_turn completed"),
    ]
    assert [note for note in notes if "on_chunk" in note] == ["a.on_chunk done", "b.on_chunk done"]
    steps = [note for note in notes if note.endswith(" result")]
    assert steps == [f"{name} result" for name in ("a.before_final_step", "b.before_final_step")] + [
        f"{name} result" for name in ("b.after_final_step", "a.after_final_step")
    ]


def test_each_attempt_at_a_step_is_met_and_says_how_it_failed(pumps: Pumps) -> None:
    notes: list[str] = []
    shop = Shop(fails("stream", attempts=1, then=says("done")), middleware=[Noting("a", notes)])
    assert shop.turn(pumps).text == "done"
    assert [note for note in notes if "_step 1" in note and "final" not in note] == [
        *("a.before_step 1.1", "a.after_step 1.1 stream"),
        *("a.before_step 1.2", "a.after_step 1.2 reply"),
    ]


@pytest.mark.parametrize("method", ["before_turn", "before_step"])
def test_what_raises_before_a_turn_or_a_step_fails_the_turn(pumps: Pumps, method: str) -> None:
    notes: list[str] = []
    shop = Shop(middleware=[Noting("a", notes), Noting("b", notes, **{method: 1}), Noting("c", notes)])
    result = shop.turn(pumps)
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.INTERNAL_ERROR)
    assert result.error is not None
    assert (
        f"the middleware Noting.{method} raised ValueError at tests/integration/engine/test_middleware.py:"
        in result.error
    )
    assert SECRET not in result.error
    assert result.spends == ()
    assert not any(note.startswith(f"c.{method}") for note in notes)
    assert any(note == "a.after_turn failed" for note in notes)


def test_a_step_that_is_stopped_asks_no_model(pumps: Pumps) -> None:
    notes: list[str] = []
    shop = Shop(middleware=[Noting("a", notes), Noting("b", notes, before_step=1)])
    assert shop.turn(pumps).input_tokens == 0
    assert [note for note in notes if "after_step" in note] == [
        *("b.after_step 1.1 nothing", "a.after_step 1.1 nothing"),
    ]


@pytest.mark.parametrize("method", ["on_chunk", "after_step", "after_call", "before_final_step", "after_final_step"])
def test_what_raises_elsewhere_is_logged_and_changes_nothing(
    pumps: Pumps, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[str] = []
    shop = Shop(calls(("write", {"name": "x"})), middleware=[Noting("a", notes, **{method: 100}), Noting("b", notes)])
    result = shop.turn(pumps)
    assert (result.ending, result.text) == (Ending.COMPLETED, "done")
    assert shop.trace == [("write", TraceStatus.COMPLETED)]
    assert any(note.startswith(f"b.{method}") for note in notes), "the others are called all the same"
    assert f"Noting.{method} raised" in caplog.text
    assert SECRET not in caplog.text


def test_a_check_that_raises_denies_the_call(pumps: Pumps, caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []
    shop = Shop(calls(("write", {"name": "x"})), middleware=[Noting("a", notes, check_call=1), Noting("b", notes)])
    shop.turn(pumps)
    assert (shop.ran, shop.trace) == ([], [("write", TraceStatus.DENIED)])
    assert "Noting.check_call raised" in caplog.text
    assert not any("b.check_call" in note or "before_call" in note for note in notes)


def test_the_first_denial_counts(pumps: Pumps) -> None:
    notes: list[str] = []
    shop = Shop(calls(("forbidden", {"name": "x"})), middleware=[Noting("a", notes), Noting("b", notes)])
    shop.turn(pumps)
    assert shop.trace == [("forbidden", TraceStatus.DENIED)]
    assert not any("b.check_call" in note for note in notes)


@pytest.mark.parametrize("tool", ["read", "write"])
def test_what_raises_before_a_call_fails_it_and_nothing_has_started(pumps: Pumps, tool: str) -> None:
    """Of a write there is no intent, so nothing says that it may have happened."""
    notes: list[str] = []
    shop = Shop(calls((tool, {"name": "x"})), middleware=[Noting("a", notes), Noting("b", notes, before_call=1)])
    pump = pumps(shop.brain)
    handle = pump.submit("s1", "hello")
    result = pump.finish(handle)
    assert (shop.ran, result.ending) == ([], Ending.COMPLETED)
    (entry,) = pump.wiring.store.traces.of_turn(handle.turn_id)
    assert entry.status is TraceStatus.FAILED
    (message,) = [m for m in pump.wiring.store.transcripts.of_turn(handle.turn_id) if m.role == "tool"]
    assert "not run: the middleware Noting.before_call raised ValueError" in message.content
    assert SECRET not in message.content
    assert [note for note in notes if "after_call" in note] == [f"{name}.after_call {tool} failure" for name in "ba"]
    assert list(pump.wiring.store.calls.of_turn(handle.turn_id)) == []


def test_an_end_that_raises_is_told_again_to_all(pumps: Pumps) -> None:
    notes: list[str] = []
    shop = Shop(middleware=[Noting("a", notes), Noting("b", notes, after_turn=1)])
    pump = pumps(shop.brain)
    handle = pump.submit("s1", "hello")
    pump.finish(handle)
    pump.settle(handle)
    assert [note for note in notes if "after_turn" in note] == [
        *("b.after_turn completed", "a.after_turn completed"),
        *("b.after_turn completed", "a.after_turn completed"),
    ]


def test_an_observer_that_hangs_holds_up_no_result(pumps: Pumps) -> None:
    """What waits 0.2 s around each step goes on in a thread; the result does not wait for it to end."""
    never = threading.Event()

    class Hanging(Middleware):
        def before_final_step(self, step: FinalStepInfo) -> None:
            never.wait(30)

    try:
        assert Shop(middleware=[Hanging()]).turn(pumps).ending is Ending.COMPLETED
    finally:
        never.set()


def test_a_brain_without_middleware_has_nothing_to_call() -> None:
    brain = Brain("plain", ScriptedProvider([says("hi")]), callbacks={"on_turn_end": print})
    assert {name: len(getattr(brain.hooks, name)) for name in METHODS if getattr(brain.hooks, name)} == {
        "after_turn": 1
    }


def test_what_is_no_middleware_is_refused() -> None:
    class Misspelt(Middleware):
        def before_cal(self) -> None: ...

    for given, why in ((Noting, "is not a Middleware"), (Misspelt(), "Misspelt has before_cal")):
        with pytest.raises(InvalidInput, match=why):
            Brain("b", ScriptedProvider([]), middleware=[given])  # type: ignore[list-item]
