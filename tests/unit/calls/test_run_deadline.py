"""How long a call may take: its tool's cap, and never past its turn's deadline."""

from __future__ import annotations

import pytest

from brainq.brain.brain import Brain
from brainq.contracts.status import Effect, TraceStatus
from brainq.tools.context import RunContext
from tests.unit.calls.fakes import Rig


@pytest.mark.parametrize(("cap_ms", "remaining_ms", "at_most_s"), [(90_000, 60_000, 60.0), (60_000, 90_000, 60.0)])
def test_a_call_has_its_cap_and_never_more_than_its_turn(
    brain: Brain, rig: Rig, cap_ms: int, remaining_ms: int, at_most_s: float
) -> None:
    left: list[float] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def look(ctx: RunContext) -> None:  # pyright: ignore[reportUnusedFunction]
        left.append(ctx.token.remaining_s)

    rig.claim("look", cap_ms=cap_ms, remaining_ms=remaining_ms)
    rig.run()
    assert rig.status is TraceStatus.COMPLETED
    assert at_most_s - 30.0 < left[0] <= at_most_s


def test_a_call_whose_turn_has_no_time_left_never_starts(brain: Brain, rig: Rig) -> None:
    started: list[str] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> None:  # pyright: ignore[reportUnusedFunction]
        started.append("look")

    rig.claim("look", cap_ms=60_000, remaining_ms=0)
    rig.run()
    assert rig.status is TraceStatus.TIMED_OUT
    assert started == []
