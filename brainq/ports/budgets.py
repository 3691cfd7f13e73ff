"""Budgets of turns in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.limits import Limits
from brainq.contracts.snapshot import BudgetSnapshot
from brainq.contracts.usage import TokenUsage


class Budgets(Protocol):
    """Atomic claims, one clock. Fitted by `state.budgets.RedisBudgets`.

    claim   one word an id, in order: `CLAIMED`, `ALREADY` or `SPENT`; `EXPIRED` for all past the deadline
    """

    def create(self, session_id: str, turn_id: str, limits: Limits) -> bool: ...
    def claim(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]: ...
    def spend(
        self, session_id: str, turn_id: str, usage: TokenUsage, cost_usd: float | None, spend_id: str
    ) -> bool: ...
    def snapshot(self, session_id: str, turn_id: str) -> BudgetSnapshot: ...
