"""A turn of 200 steps: under the model's window at every step, and bounded in Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brainq import Brain, Effect, Limits, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import calls, says
from brainq.runtime.text.estimate import estimate_request
from tests.support.pump import Pump

STEPS = 200
MOST_TOKENS = 6000
RESULT = "The shelf holds dust, two nails and a note that says: look further. " * 12


class Walk:
    """Looks at one shelf a step; notes how large each request was."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.provider = ScriptedProvider(rules=self._step, auxiliary=self._auxiliary)

    def _step(self, request: ModelRequest) -> ModelReply:
        self.tokens.append(estimate_request(request))
        if request.step == STEPS:
            return says("Nothing.")
        return calls(("look", {"shelf": request.step}))

    def _auxiliary(self, request: ModelRequest) -> ModelReply:
        return says("Shelves so far: dust and nails.")


def test_it_stays_under_the_window_and_bounded_in_redis(pumps: Callable[..., Pump]) -> None:
    walk = Walk()
    limits = Limits(max_steps=STEPS, max_tool_calls=STEPS, max_context_tokens=MOST_TOKENS, timeout_s=600)
    brain = Brain("walker", walk.provider, "Find the lamp.", limits=limits)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a shelf.

        Args:
            shelf: which
        """
        return f"Shelf {shelf}. {RESULT}"

    pump = pumps(brain, lease_s=5.0)
    handle = pump.submit("s1", "Where is the lamp?")
    history = pump.wiring.state.keys.of_session("s1", "history")
    client: Any = pump.wiring.state.redis
    most_bytes = 0
    while bell := pump.take():
        pump.answer(bell)
        most_bytes = max(most_bytes, client.memory_usage(history) or 0)
    result = pump.finish(handle, timeout_s=30)
    assert (result.ending, result.stop_reason, result.steps) == (Ending.COMPLETED, StopReason.ANSWERED, STEPS)
    assert len(walk.tokens) == STEPS
    assert max(walk.tokens) <= MOST_TOKENS
    compactions = [spend for spend in result.spends if spend.kind == "compaction"]
    assert 5 < len(compactions) < STEPS / 4
    # About 4 bytes a token, and as much again for JSON and the list; uncompacted it is over 160 kB.
    assert most_bytes < 2 * 4 * MOST_TOKENS
    kept = handle.transcript()
    pages = [handle.transcript(limit=50, after=after) for after in range(0, len(kept), 50)]
    assert kept == tuple(message for page in pages for message in page)
    assert [call.result for call in handle.calls()] == [m.content for m in kept if m.role == "tool"]
    assert [message.call_id for message in kept if message.role == "tool"] == [f"c{n}-0" for n in range(1, STEPS)]
