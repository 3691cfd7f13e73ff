"""A model with a price that bills three times the expected amount. Each bill is in the diary."""

from __future__ import annotations

import os

from brainq import Brain, Limits, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.providers import register_provider
from brainq.engine.models.scripted import says
from tests.support.brains import diary

MODEL = "gpt-4.1-mini"
EXPECTED_TOKENS = 25_000
BILLED = TokenUsage(output_tokens=3 * EXPECTED_TOKENS)
BILL_USD = cost_usd("openai", MODEL, BILLED) or 0.0


def answer(request: ModelRequest) -> ModelReply:
    diary.note("billed", turn=request.turn_id, usd=BILL_USD)
    return says("Done.", usage=BILLED)


if os.environ.get("BRAINQ_APP", "").startswith(__name__):  # in its workers alone, not where a test imports it
    register_provider("openai", lambda: ScriptedProvider(rules=answer, name="openai", latency_s=0.1))
brain = Brain("spends", f"openai:{MODEL}", limits=Limits(max_output_tokens=EXPECTED_TOKENS))
