"""Two brains that obey: of one so many turns may be live at once, of the other as many as there is room for."""

from __future__ import annotations

from brainq import Brain
from tests.support.brains.obedient import Slowly, obey

APP = "tests.support.brains.capped:brains"
CAP = 2

desk = Brain("desk", Slowly(rules=obey))
lab = Brain("lab", Slowly(rules=obey), max_live_turns=CAP)
brains = [desk, lab]
