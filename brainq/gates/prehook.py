"""The gate of the brain's own `on_pre_tool_use`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brainq.contracts.callbacks import Deny, PreToolHook, PreToolUse
from brainq.contracts.outcome import ToolDenied

MAX_MESSAGE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What the hook said: `denied`, or `arguments` to use instead, or neither (go on)."""

    denied: ToolDenied | None = None
    block_tool: bool = False
    arguments: dict[str, Any] | None = None


_GO_ON = HookVerdict()


def judge_by_hook(hook: PreToolHook | None, use: PreToolUse) -> HookVerdict:
    """Ask the hook. It fails closed: a hook that raises, or answers something else, denies the call."""
    if hook is None:
        return _GO_ON
    try:
        answer: object = hook(use)
    except Exception as error:
        return _denied(
            f"The check before this tool failed ({type(error).__name__}), so the call was not made. "
            "Do not repeat it in this turn."
        )
    match answer:
        case None:
            return _GO_ON
        case Deny():
            return _denied(answer.message, block_tool=answer.block_tool)
        case dict():
            return HookVerdict(arguments=answer)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return _denied(
                f"The check before this tool answered a {type(answer).__name__}, not None, Deny or a dict, "
                "so the call was not made."
            )


def _denied(message: str, *, block_tool: bool = False) -> HookVerdict:
    return HookVerdict(ToolDenied(reason="pre_hook", message=message[:MAX_MESSAGE_CHARS]), block_tool)
