"""A brain that calls a model over OpenAI's wire, at OPENAI_BASE_URL, and uses no tools."""

from __future__ import annotations

from brainq import Brain
from brainq.contracts.turn import Limits

brain = Brain("limited", model="openai:m", limits=Limits(timeout_s=600))
