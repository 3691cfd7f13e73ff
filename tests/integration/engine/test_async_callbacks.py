"""A brain whose callbacks, prompt and approval rule are all async."""

from __future__ import annotations

import asyncio
from typing import Any

from brainq import Brain, Deny, PreToolUse, TurnInfo
from brainq.testing import calls, says
from tests.support.people import Pumps, Watched, brain_of, statuses


def async_brain(model: Watched, heard: list[str]) -> Brain:
    async def dear(arguments: dict[str, Any]) -> str | None:
        await asyncio.sleep(0)
        return "a dear one" if arguments["name"] == "gold" else None

    async def prompt(turn: TurnInfo) -> str:
        return f"Help {turn.session_id}."

    brain = brain_of(model, approval=dear)
    brain.system_prompt = Brain("other", model, prompt).system_prompt

    @brain.on_pre_tool_use
    async def check(use: PreToolUse) -> Deny | None:  # pyright: ignore[reportUnusedFunction]
        await asyncio.sleep(0)
        return Deny("no notes today") if use.call.name == "note" else None

    def hear(name: str) -> None:
        async def callback(told: object) -> None:
            await asyncio.sleep(0)
            heard.append(name)

        getattr(brain, name)(callback)

    for name in ("on_turn_start", "on_usage", "on_post_tool_use", "on_turn_end"):
        hear(name)
    return brain


def test_they_are_all_heard(pumps: Pumps) -> None:
    heard: list[str] = []
    asked = calls(("note", {"name": "n"}), ("write", {"name": "tin"}), ("write", {"name": "gold"}))
    model = Watched(asked, says("done"))
    pump = pumps(async_brain(model, heard))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    (approval,) = handle.approvals()
    assert (approval.reason, approval.call_id) == ("a dear one", "c1-2")
    pump.client.approve(approval.id, by="ann")
    pump.finish(handle)
    assert statuses(pump, handle) == {"c1-0": "denied", "c1-1": "completed", "c1-2": "completed"}
    assert "no notes today" in model.results(2)[0]
    assert heard == ["on_turn_start", "on_post_tool_use", "on_post_tool_use", "on_usage", "on_turn_end"]
    assert model.requests[0].messages[0].content.startswith("Help s1.")
