"""`on_post_tool_use` for calls that end outside the worker that ran them: results from outside, and child turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brainq.brain import Brain
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import CallRef
from brainq.contracts.message import ToolCall
from brainq.contracts.outcome import ToolOutcome
from brainq.observe.logs import logger
from brainq.ports.calls import Calls

log = logger("brainq.people")

NEWS = frozenset({"SETTLED", "EARLY"})  # the words after which a result is the call's


Tell = Callable[[str, ToolOutcome], None]
"""Called with the word that taking a result brought, and the outcome."""

Hook = Callable[[CallRef, str], Tell]
"""From a call and its tool to what is told of its end. Made before the result is taken."""


@dataclass(eq=False)
class PostHook:
    """Calls the hook of the call's brain in the process that took the result. A hook that raises changes nothing."""

    brain_of: Callable[[CallRef], Brain | None]
    calls: Calls

    def ready(self, ref: CallRef, tool: str) -> Tell:
        """Made before the result is taken: then the call's arguments are still there."""
        brain = self.brain_of(ref)
        hook = None if brain is None else brain.callbacks.on_post_tool_use
        known = None if brain is None else brain.tools.get(tool)
        if hook is None or known is None:
            return _nothing
        call = ToolCall(id=ref.call_id, name=tool, arguments=self.calls.arguments(ref))

        def tell(word: str, outcome: ToolOutcome) -> None:
            if word not in NEWS:
                return
            try:
                hook(PostToolUse(ref.turn_id, ref.session_id, call, known.spec, outcome))
            except Exception as failure:
                log.error(
                    "on_post_tool_use raised", failure=failure, turn_id=ref.turn_id, call_id=ref.call_id
                )

        return tell


def _nothing(word: str, outcome: ToolOutcome) -> None:
    """Nobody wants to know, or this process has another brain."""


def no_hook(ref: CallRef, tool: str) -> Tell:
    """Where nobody listens."""
    return _nothing
