"""What becomes of a call whose worker stopped beating: `rescue_verdict` is pure."""

from __future__ import annotations

import pytest

from brainq.contracts.call import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.status import Effect
from brainq.engine.calls.report import NEVER_STARTED
from brainq.engine.upkeep.lost_calls import (
    UNKNOWN,
    WORKERS_LOST,
    rescue_verdict,
)

WRITE = Effect.LOCAL_WRITE
RAISED = ToolFailure(error="NotStarted: the engine did not start", error_type="NotStarted")


@pytest.mark.parametrize(
    ("started", "outcome", "judged"),
    [
        ("void", None, None),
        ("started", None, UNKNOWN),
        ("done", ToolSuccess(value=1), ToolSuccess(value=1)),
        ("done", ToolTimeout(after_ms=900, still_running=True), UNKNOWN),  # it ran on until its worker died
        ("done", ToolTimeout(after_ms=0), ToolTimeout(after_ms=0)),
        ("done", RAISED, RAISED),  # a tool's own exception of that name has run
        ("done", NEVER_STARTED, None),  # the intent stands, and nothing came of it
    ],
)
def test_a_write_runs_again_only_if_it_surely_never_ran(
    started: str, outcome: ToolOutcome | None, judged: ToolOutcome | None
) -> None:
    told = None if outcome is None else outcome.model_dump_json()
    assert rescue_verdict(WRITE, False, 1, 3, started, told) == judged


def test_what_never_ran_is_given_up_as_lost_in_the_end() -> None:
    assert rescue_verdict(WRITE, False, 3, 3, "done", NEVER_STARTED.model_dump_json()) == WORKERS_LOST
    assert rescue_verdict(Effect.READ_ONLY, False, 3, 3, "void", None) == WORKERS_LOST
