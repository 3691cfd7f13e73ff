"""Tools without a model: a context for the function itself, and one call through the gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.contracts.history import TurnCall
from brainq.engine.brain.brains import BrainsArgument, read_brains
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.errors import InvalidInput
from brainq.testing.runs import run


def context(
    *,
    session_id: str = "test",
    turn_id: str = "turn",
    call_id: str = "c1-0",
    attempt: int = 1,
    timeout_s: float = 60.0,
    cwd: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    brain: str = "",
    ready: bool = True,
) -> RunContext:
    """Return a RunContext, to call a tool's function with.

    timeout_s: what is left of the call's time. `token.cancel("why")` of the context cancels it.
    ready: whether the turn is ready.

    `outputs()` of the context returns what the function cited, rendered and changed.
    """
    return RunContext(
        session_id=session_id,
        turn_id=turn_id,
        call_id=call_id,
        attempt=attempt,
        token=DeadlineToken(timeout_s),
        cwd=cwd,
        metadata=dict(metadata or {}),
        brain=brain,
        is_ready=lambda: ready,
    )


def call(brain: BrainsArgument, tool: str, arguments: Mapping[str, Any] | str, *, approve: bool = True) -> TurnCall:
    """Call one tool as a model does: with all gates, hooks, approvals and repairs. Returns what became of the call.

    arguments: as text they are passed on raw, as a model's broken JSON is.
    approve: whether an approval that it needs is given or denied.

    Raises InvalidInput if the brain has no such tool.
    """
    if all(tool not in one.tools for one in read_brains(brain)):
        raise InvalidInput("tool", f"the brain has no tool {tool!r}")
    asked = arguments if isinstance(arguments, str) else dict(arguments)
    with run(brain, [calls((tool, asked)), *[says("Done.")] * 8]) as t:
        handle = t.start("Call it")
        if any(approval.state == "pending" for approval in handle.approvals()):
            t.approve() if approve else t.deny()
        return t.calls[0]
