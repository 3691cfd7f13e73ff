"""Exceptions that nobody foresaw, in a coordinator's own work: they cost a call or a turn, at once, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from sqlalchemy.exc import OperationalError

from brainq.contracts.claim import TurnClaim
from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.runtime.processes import resources
from brainq.testing import ScriptedProvider, calls, says
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]


def brain_with_a_tool(*names: str) -> Brain:
    brain = Brain("faults", ScriptedProvider([calls(*((name, {}) for name in names)), says("done")]))

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> str:  # pyright: ignore[reportUnusedFunction]
        return "written"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def broken() -> str:  # pyright: ignore[reportUnusedFunction]
        return "never"

    return brain


def test_arguments_that_cannot_be_checked_cost_their_call_and_not_the_turn(pumps: Pumps) -> None:
    brain = brain_with_a_tool("broken", "write")
    specs: Any = brain.tools._specs  # pyright: ignore[reportPrivateUsage]
    specs["broken"] = specs["broken"].model_copy(update={"parameters": {"type": "dict"}})
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    result = pump.finish(handle)
    assert (result.ending, result.text, result.steps) == (Ending.COMPLETED, "done", 2)
    broken, write = pump.wiring.state.calls.trace("s1", handle.turn_id)
    assert (broken.status, write.status) == (TraceStatus.DENIED, TraceStatus.COMPLETED)
    assert (
        "could not be checked (ToolSchemaError at " in pump.wiring.state.runtime.results("s1", handle.turn_id)["c1-0"]
    )


def test_a_fault_of_the_coordinator_ends_the_turn_at_once_with_its_type_and_place(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = pumps(brain_with_a_tool("write"))
    tried: list[int] = []

    def commit(claim: TurnClaim, step: int, *given: Any, **options: Any) -> Any:
        tried.append(step)
        raise KeyError("a secret of the user's")

    monkeypatch.setattr(pump.wiring.state.turns, "commit_calls", commit)
    result = pump.finish(pump.submit("s1", "Go."))
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.INTERNAL_ERROR)
    assert result.error is not None
    assert result.error.startswith("the coordinator raised KeyError at tests/integration/engine/test_engine_faults.py:")
    assert "secret" not in result.error
    assert tried == [1]


class ShortOfThreads(ScriptedProvider):
    """Has no thread for its first request."""

    asked = 0

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("can't start new thread")
        yield from super().generate_stream(request)


def test_what_a_process_lacks_is_not_its_models_failure(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = ShortOfThreads([says("done")])
    pump = pumps(Brain("short", provider))
    handle = pump.submit("s1", "Go.")
    monkeypatch.setattr(resources, "find_shortage", lambda: "no thread can be started")
    with pytest.raises(RuntimeError, match="new thread"):  # a worker looks at what it lacks, then
        pump.drain()
    wait_until(lambda: pump.sweep() or pump.waiting(), "the turn is rung for again")
    assert (pump.finish(handle).text, provider.asked) == ("done", 2)


def test_a_model_is_asked_again_after_a_shortage_that_is_over(pumps: Pumps) -> None:
    provider = ShortOfThreads([says("done")])
    pump = pumps(Brain("short", provider))
    assert (pump.finish(pump.submit("s1", "Go.")).text, provider.asked) == ("done", 2)


@pytest.mark.parametrize(
    "trouble",
    [redis.ConnectionError("away"), OperationalError("select", {}, Exception("away")), TimeoutError("away")],
    ids=["redis", "sql", "network"],
)
def test_a_server_that_is_away_is_waited_for(pumps: Pumps, monkeypatch: pytest.MonkeyPatch, trouble: Exception) -> None:
    pump = pumps(brain_with_a_tool("write"))
    handle = pump.submit("s1", "Go.")
    commit = pump.wiring.state.turns.commit_calls
    tried: list[int] = []

    def away(claim: TurnClaim, step: int, *given: Any, **options: Any) -> Any:
        tried.append(step)
        if len(tried) < 3:
            raise trouble
        return commit(claim, step, *given, **options)

    monkeypatch.setattr(pump.wiring.state.turns, "commit_calls", away)
    result = pump.finish(handle)
    assert (result.text, tried) == ("done", [1, 1, 1])
    assert [spend.kind for spend in result.spends] == ["step", "step"], "the reply was kept"


def test_a_turn_that_cannot_be_looked_at_is_rung_for_again(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_with_a_tool("write"))
    handle = pump.submit("s1", "Go.")
    look = pump.wiring.state.turns.look

    def away(*_: Any) -> Any:
        monkeypatch.setattr(pump.wiring.state.turns, "look", look)
        raise redis.ConnectionError("away")

    monkeypatch.setattr(pump.wiring.state.turns, "look", away)
    with pytest.raises(redis.ConnectionError):
        pump.drain()
    wait_until(lambda: pump.sweep() or pump.waiting(), "the turn is rung for again")
    assert pump.finish(handle).text == "done"
