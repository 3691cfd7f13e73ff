"""The view of a turn at its first step; what a test gives takes the place of what stands here."""

from __future__ import annotations

from typing import Any

from brainq.contracts.conversation import EMPTY_CONVERSATION
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import Awaits, TurnState
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import TurnView

REQUEST = TurnRequest(turn_id="t-1", session_id="s1", user_message="Pay it.", cwd="/w", metadata={"k": 1})


def view(request: TurnRequest = REQUEST, **given: Any) -> TurnView:
    fields: dict[str, Any] = {
        "state": TurnState.ACTIVE,
        "awaits": Awaits.COORDINATOR,
        "now_ms": 0,
        "deadline_ms": 60_000,
        "created_at_ms": 0,
        "active_at_ms": 0,
        "step": 1,
        "thinking_step": 1,
        "steps_used": 1,
        "steps_max": 6,
        "lost_attempts": 0,
        "cancel": False,
        "cancel_reason": "",
        "begun": True,
        "turn_number": 1,
        "write_epoch": 0,
        "succeeded": {},
        "blocked": frozenset[str](),
        "history": EMPTY_CONVERSATION,
        "usage": TokenUsage(),
        "cost_usd": 0,
        "open_calls": False,
    }
    return TurnView(request=request, **{**fields, **given})
