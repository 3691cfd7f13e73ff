"""`on_post_tool_use` for calls that no worker ended, where a turn's time is over: a sweeper may be who ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.call import DueHook, ToolSuccess
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.turn.coordinator import call_due_hooks
from tests.support.stand_in import stand_in
from tests.unit.engine.turn.views import view


@pytest.mark.parametrize("over", [{"deadline_ms": -1}, {"cancel": True}])
def test_a_hook_that_hangs_holds_up_no_turn_whose_time_is_over(over: dict[str, Any]) -> None:
    brain, ended, done = Brain("hooks", "openai:x"), list[PostToolUse](), list[object]()
    go_on = threading.Event()

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        return "seen"

    @brain.on_post_tool_use
    def hangs(use: PostToolUse) -> None:  # pyright: ignore[reportUnusedFunction]
        go_on.wait(20)
        ended.append(use)

    def due_hooks(_: object, __: object) -> list[DueHook]:
        return [DueHook("c1-0", "look", {}, ToolSuccess(value="seen"))]

    def hooks_done(_: object, calls: object) -> None:
        done.append(calls)

    def retry(work: Callable[[], Any]) -> Any:
        return work()

    turns = SimpleNamespace(due_hooks=due_hooks, hooks_done=hooks_done)
    claim = SimpleNamespace(turn_id="t-1", session_id="s1")
    turn: Any = SimpleNamespace(claim=claim, view=view(hooks_due=("c1-0",), **over), retry=retry)
    try:
        call_due_hooks(brain, stand_in(turns), turn)
        assert (ended, done) == ([], [("c1-0",)])
    finally:
        go_on.set()
