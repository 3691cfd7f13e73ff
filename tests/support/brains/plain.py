"""A brain that answers every message at once."""

from __future__ import annotations

from brainq import Brain, ScriptedProvider
from brainq.engine.models.scripted import says

brain = Brain("plain", ScriptedProvider(rules=lambda _: says("done")))
