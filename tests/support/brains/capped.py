"""Two brains that obey: one with a cap on its live turns, and one without."""

from __future__ import annotations

from brainq import Brain
from tests.support.brains.obedient import Slowly, obey

APP = "tests.support.brains.capped:brains"
CAP = 2

desk = Brain("desk", Slowly(rules=obey))
lab = Brain("lab", Slowly(rules=obey), max_live_turns=CAP)
brains = [desk, lab]
