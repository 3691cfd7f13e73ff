"""Models that follow a script, for tests, demos and benchmarks of your own brains.

from brainq import Brain
from brainq.testing import ScriptedProvider, calls, says

brain = Brain("shop", ScriptedProvider([calls(("count", {"item": "apples"})), says("Three.")]))
"""

from __future__ import annotations

from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, calls, fails, says

__all__ = ["ScriptedFailure", "ScriptedProvider", "calls", "fails", "says"]
