"""A brain that obeys. Its workers shorten the minute of a model's limit to BRAINQ_TEST_WINDOW_S."""

from __future__ import annotations

import os

from brainq import Brain, Effect, RunContext
from brainq.adapters.redis import rates
from tests.support.brains import diary
from tests.support.brains.obedient import Slowly, obey

APP = "tests.support.brains.short_window:brain"
WINDOW_S = "BRAINQ_TEST_WINDOW_S"  # set for workers alone: the tests' own process keeps its minute

if WINDOW_S in os.environ:
    rates.WINDOW_S = float(os.environ[WINDOW_S])

brain = Brain("short_window", Slowly(rules=obey))


@brain.tool(effect=Effect.LOCAL_WRITE)
def write(context: RunContext) -> str:
    """Write."""
    diary.note("write", turn=context.turn_id)
    return "written"
