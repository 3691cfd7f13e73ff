"""A budget hash as the snapshot that its readers get."""

from __future__ import annotations

import pytest

from brainq.adapters.redis.turn_steps import budget_snapshot

HASH = {
    "timeout_ms": "1000",
    "steps_max": "9",
    "tool_calls_max": "9",
    "reflections_max": "1",
    "max_context_tokens": "99",
    "input_tokens": "7",
}


@pytest.mark.parametrize(
    ("found", "usd", "is_known"), [({}, 0.0, False), ({"cost_usd": "0"}, 0.0, True), ({"cost_usd": "0.5"}, 0.5, True)]
)
def test_a_cost_is_known_once_a_model_call_had_a_price(found: dict[str, str], usd: float, is_known: bool) -> None:
    snapshot = budget_snapshot({**HASH, **found}, 5_000)
    assert (snapshot.cost_usd, snapshot.cost_known) == (usd, is_known)
