"""Budgets in Redis. Fits `ports.redis_turns.Budgets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from brainq.contracts.model import TokenUsage
from brainq.contracts.turn import Limits
from brainq.contracts.view import BudgetSnapshot
from brainq.errors import TurnNotFound
from brainq.state.keys import Keys
from brainq.state.typed_scripts import Scripts

STANDALONE_KEEP_S = 86_400  # lifetime of a budget that belongs to no turn


class RedisBudgets:
    """Claims and snapshots of any turn's budget, by its ids."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._run = scripts
        self._keys = keys

    def _key(self, session_id: str, turn_id: str) -> str:
        return self._keys.turn(session_id, turn_id) + ":budget"

    def create(self, session_id: str, turn_id: str, limits: Limits) -> bool:
        """Make a budget that belongs to no queued turn; False when it exists."""
        reply = self._run.budget_create(
            session_id,
            turn_id,
            timeout_ms=int(limits.timeout_s * 1000),
            max_steps=limits.max_steps,
            max_tool_calls=limits.tool_calls,
            max_reflections=limits.max_reflections,
            max_context_tokens=limits.max_context_tokens,
            max_total_tokens=limits.max_total_tokens,
            max_cost_usd=limits.max_cost_usd,
            keep_ms=int(limits.timeout_s * 1000) + STANDALONE_KEEP_S * 1000,
        )
        return reply == "CREATED"

    def claim(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]:
        """One word an id, in order: `CLAIMED`, `ALREADY` or `SPENT`; `EXPIRED` for all past the deadline."""
        reply = self._run.budget_claim(session_id, turn_id, kind=kind, ids=ids)
        return ["EXPIRED"] * len(ids) if reply == "EXPIRED" else list(reply.claims)

    def spend(self, session_id: str, turn_id: str, usage: TokenUsage, cost_usd: float | None, spend_id: str) -> bool:
        """Add tokens and money; a `spend_id` seen before, or a budget that is gone, adds nothing."""
        reply = self._run.budget_spend(
            session_id,
            turn_id,
            id=spend_id,
            input=usage.input_tokens,
            output=usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_creation=usage.cache_creation_tokens,
            cost=cost_usd,
        )
        return reply == "ADDED"

    def snapshot(self, session_id: str, turn_id: str) -> BudgetSnapshot:
        """What is left. Raises TurnNotFound when there is no such budget."""
        pipe = self._run.client.pipeline(transaction=False)
        pipe.time()
        pipe.hgetall(self._key(session_id, turn_id))
        pipe.hmget(self._keys.turn(session_id, turn_id), "state", "parked_at")
        clock, row, parked = cast(tuple[tuple[int, int], dict[str, Any], tuple[str | None, str | None]], pipe.execute())
        if not row:
            raise TurnNotFound(
                f"turn {turn_id!r} of session {session_id!r} has no budget in Redis; it may have expired"
            )
        return budget_snapshot(row, budget_now_ms(clock[0] * 1000 + clock[1] // 1000, *parked))


def budget_now_ms(now_ms: int, state: str | None, parked_at: str | None) -> int:
    """What a turn's deadline is compared with: while it is parked, when that began, for its deadline does not run."""
    return int(parked_at) if state == "parked" and parked_at else now_ms


def budget_snapshot(row: dict[str, Any], now_ms: int) -> BudgetSnapshot:
    """A budget hash as its documented snapshot. A turn that still waits has its whole time left."""
    deadline = int(row.get("deadline") or now_ms + int(row["timeout_ms"]))
    remaining_ms = max(0, deadline - now_ms)
    return BudgetSnapshot(
        remaining_s=remaining_ms / 1000,
        expired=remaining_ms == 0,
        steps_used=int(row.get("steps_used") or 0),
        steps_max=int(row["steps_max"]),
        tool_calls_used=int(row.get("tool_calls_used") or 0),
        tool_calls_max=int(row["tool_calls_max"]),
        reflections_used=int(row.get("reflections_used") or 0),
        reflections_max=int(row["reflections_max"]),
        max_context_tokens=int(row["max_context_tokens"]),
        tokens_used=int(row.get("input_tokens") or 0) + int(row.get("output_tokens") or 0),
        tokens_max=int(row["tokens_max"]) if row.get("tokens_max") else None,
        cost_usd=float(row.get("cost_usd") or 0),
        cost_max_usd=float(row["cost_max_usd"]) if row.get("cost_max_usd") else None,
    )
