"""What the owner of a turn reads of it before it decides, in one round trip."""

from __future__ import annotations

from typing import Any

from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.status import TurnState
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import TokenUsage
from brainq.contracts.view import TurnView
from brainq.state.connection import Client, as_mapping
from brainq.state.keys import Keys

HISTORY_READ = 2000  # newest messages a step looks at; what fits the window of a model is chosen from them

_TURN_FIELDS = [
    "state",
    "awaits",
    "step",
    "thinking_step",
    "lost_attempts",
    "cancel",
    "cancel_reason",
    "begun",
    "write_epoch",
    "created_at",
    "active_at",
    "n_calls",
    "absorbed",
    "lost_reason",
]
_BUDGET_FIELDS = [
    "deadline",
    "steps_used",
    "steps_max",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "cost_usd",
]


def read_view(client: Client, keys: Keys, claim: TurnClaim) -> TurnView:
    """All that decisions and preparations are made from."""
    sid, key = claim.session_id, keys.turn(claim.session_id, claim.turn_id)
    found = client.many(
        [
            ("HMGET", key, *_TURN_FIELDS),
            ("HMGET", key + ":budget", *_BUDGET_FIELDS),
            ("GET", key + ":spec"),
            ("LRANGE", keys.of_session(sid, "history"), -HISTORY_READ, -1),
            ("HGETALL", key + ":guard"),
            ("SMEMBERS", key + ":blocked"),
            ("HGET", keys.of_session(sid, "session"), "turns"),
        ]
    )
    turn_row, budget_row, spec, history, guard, blocked, number = found
    turn = dict(zip(_TURN_FIELDS, turn_row, strict=True))
    budget = dict(zip(_BUDGET_FIELDS, budget_row, strict=True))
    begun = turn["begun"] == "1"
    return TurnView(
        request=TurnRequest.model_validate_json(spec),
        state=TurnState(turn["state"]),
        awaits=turn["awaits"],
        now_ms=claim.now_ms,
        deadline_ms=int(budget["deadline"]),
        created_at_ms=int(turn["created_at"]),
        active_at_ms=int(turn["active_at"]),
        step=int(turn["step"]),
        thinking_step=int(turn["thinking_step"] or 0),
        steps_used=int(budget["steps_used"] or 0),
        steps_max=int(budget["steps_max"]),
        lost_attempts=int(turn["lost_attempts"] or 0),
        cancel=turn["cancel"] == "1",
        cancel_reason=turn["cancel_reason"] or "",
        begun=begun,
        turn_number=int(number or 0) + (0 if begun else 1),
        write_epoch=int(turn["write_epoch"] or 0),
        succeeded={fingerprint: int(epoch) for fingerprint, epoch in as_mapping(guard).items()},
        blocked=frozenset(blocked),
        history=tuple(Message.model_validate_json(item) for item in history),
        usage=usage_of(budget),
        cost_usd=float(budget["cost_usd"] or 0),
        lost_reason=turn["lost_reason"] or "",
        open_calls=int(turn["n_calls"] or 0) > 0 and turn["absorbed"] != turn["step"],
    )


def usage_of(budget: dict[str, Any]) -> TokenUsage:
    """The token counts kept in a budget hash."""
    return TokenUsage(
        input_tokens=int(budget.get("input_tokens") or 0),
        output_tokens=int(budget.get("output_tokens") or 0),
        cache_read_tokens=int(budget.get("cache_read_tokens") or 0),
        cache_creation_tokens=int(budget.get("cache_creation_tokens") or 0),
    )
