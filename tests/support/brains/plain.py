"""A brain that answers at once, whatever it is asked."""

from __future__ import annotations

from brainq import Brain, ScriptedProvider
from brainq.engine.models.scripted import says

brain = Brain("plain", ScriptedProvider(rules=lambda _: says("done")))
