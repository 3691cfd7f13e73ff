"""Two builds of a brain, `old` and `new`, with different prompts. The acts of their models and tools are recorded."""

from __future__ import annotations

from brainq import Brain, Effect, ModelReply, ModelRequest, RunContext
from brainq.testing import ScriptedProvider, calls, says
from tests.support.brains import diary


def _make(build: str) -> Brain:
    def answer(request: ModelRequest) -> ModelReply:
        asked = next(message.content for message in request.messages if message.role == "user")
        diary.note("step", build=build, asked=asked, step=request.step)
        if request.step > 2:
            return says(f"by {build}")
        gate = asked.removeprefix("gate ") if asked.startswith("gate ") and request.step == 1 else ""
        return calls(("order" if request.step == 2 else "look", {"gate": gate}))

    brain = Brain("shop", ScriptedProvider(rules=answer), f"You are {build}.", pin="turn")

    def noted(context: RunContext, gate: str) -> str:
        diary.note("call", build=build, turn=context.turn_id)
        if gate:
            diary.pass_gate(gate)
        return build

    @brain.tool(effect=Effect.READ_ONLY, timeout_s=120)
    def look(context: RunContext, gate: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        return noted(context, gate)

    @brain.tool(effect=Effect.NETWORK)
    def order(context: RunContext, gate: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Order."""
        return noted(context, gate)

    return brain


old, new = _make("old"), _make("new")
