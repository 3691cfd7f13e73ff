"""The gate for tools that were blocked for the rest of the turn."""

from __future__ import annotations

from collections.abc import Collection

from brainq.contracts.outcome import ToolDenied


def judge_blocked(tool: str, blocked: Collection[str]) -> ToolDenied | None:
    """Deny a call of a tool in `blocked`; None: go on.

    A tool is blocked by itself (`RunContext.block_tool`) or by the pre-hook (`Deny(block_tool=True)`).
    """
    if tool not in blocked:
        return None
    return ToolDenied(
        reason="blocked",
        message=f"The tool {tool} is blocked for the rest of this turn. Go on without it.",
    )
