"""TurnBudget: what a turn may still use, from any process, by its ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

from brainq.client.inner import wiring_of
from brainq.client.reach import says_what_is_away
from brainq.contracts.limits import DEFAULT_STEPS, Limits
from brainq.contracts.usage import TokenUsage
from brainq.errors import SetupError

if TYPE_CHECKING:
    from brainq.client.client import Client


@says_what_is_away
class TurnBudget:
    """One turn's budget. Claims are atomic over the whole fleet: none is ever granted past its maximum.

    A claim id makes a claim repeatable: the same id is granted again without paying twice. Without one, every
    claim pays. `TurnBudget(client, session_id, turn_id)`, or `client.state(...).budget`, attaches to one that is there.
    """

    def __init__(self, client: Client, session_id: str, turn_id: str) -> None:
        self._state = wiring_of(client).state.budgets
        self.session_id = session_id
        self.turn_id = turn_id

    @classmethod
    def create(
        cls,
        timeout_s: float,
        max_steps: int = DEFAULT_STEPS,
        max_tool_calls: int | None = None,
        max_reflections: int = 4,
        max_context_tokens: int = 200_000,
        *,
        max_total_tokens: int | None = None,
        max_cost_usd: float | None = None,
        client: Client,
        session_id: str,
        turn_id: str,
    ) -> Self:
        """Make a budget whose deadline is `timeout_s` seconds from now.

        `max_tool_calls=None` means `max_steps`. Raises SetupError when this turn has a budget: attach to it
        with `TurnBudget(client, session_id, turn_id)`.
        """
        limits = Limits(
            timeout_s=timeout_s,
            max_steps=max_steps,
            max_tool_calls=max_tool_calls,
            max_reflections=max_reflections,
            max_context_tokens=max_context_tokens,
            max_total_tokens=max_total_tokens,
            max_cost_usd=max_cost_usd,
        )
        if not wiring_of(client).state.budgets.create(session_id, turn_id, limits):
            raise SetupError(
                f"turn {turn_id!r} has a budget; attach to it with TurnBudget(client, session_id, turn_id)"
            )
        return cls(client, session_id, turn_id)

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, by Redis time; 0 when it has passed."""
        return self._state.snapshot(self.session_id, self.turn_id).remaining_s

    @property
    def is_expired(self) -> bool:
        return self._state.snapshot(self.session_id, self.turn_id).expired

    def tool_deadline(self, cap_s: float) -> float:
        """When a call with this cap must end: the cap or the turn's deadline, whichever is sooner, as an instant
        of this process's `time.monotonic()`, counted on from a reading of Redis time."""
        return time.monotonic() + self.per_tool_remaining_s(cap_s)

    def per_tool_remaining_s(self, cap_s: float) -> float:
        """Seconds one call may take: `cap_s`, but never reaching past the turn's deadline.

        There is no floor under what the deadline leaves: a call that outlived its turn could only be late.
        """
        return max(0.0, min(cap_s, self.remaining_s))

    def claim_step(self, claim_id: str = "") -> bool:
        """True when one more step may be taken."""
        return self._claim("steps", claim_id)

    def claim_tool_call(self, claim_id: str = "") -> bool:
        """True when one more tool call may be made."""
        return self._claim("tool_calls", claim_id)

    def claim_reflection(self, claim_id: str = "") -> bool:
        """True when one more reflection may be made."""
        return self._claim("reflections", claim_id)

    def add_tokens(self, usage: TokenUsage, cost_usd: float | None = None, spend_id: str = "") -> bool:
        """Add what a model call used; False when this `spend_id` was added before."""
        return self._state.spend(self.session_id, self.turn_id, usage, cost_usd, spend_id)

    def snapshot(self) -> dict[str, Any]:
        """`remaining_s expired steps_used steps_max tool_calls_used tool_calls_max reflections_used
        reflections_max`, and ours: `max_context_tokens tokens_used tokens_max cost_usd cost_max_usd`."""
        return self._state.snapshot(self.session_id, self.turn_id).model_dump()

    def _claim(self, kind: str, claim_id: str) -> bool:
        return self._state.claim(self.session_id, self.turn_id, kind, [claim_id])[0] in ("CLAIMED", "ALREADY")
