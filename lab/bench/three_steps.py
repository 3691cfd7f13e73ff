"""Three durable steps in a row: what engines for workflows are compared by.

As in Windmill's public harness (windmill-labs/windmill, pull request 8708): steps that do nothing, executions one after
another for the latency, then a batch at once for the throughput. Here the steps are a model call, a tool call and a
model call, and the turn has all that any has: events, SQL rows, a plain brain's finalizer steps behind it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.turn import TurnResult
from brainq.engine.models.scripted import calls, says
from lab.bench.load import Submitted, submit
from lab.bench.outcomes import BenchFailure, Outcome, percentile, read_outcomes, wait_finished
from lab.bench.stage import Stage, stage

APP = "lab.bench.three_steps:brain"
STEPS = 3
SINGLE, BATCH = 100, 200
ANSWER = "It is done."

brain = Brain("three", ScriptedProvider([calls(("work", {})), says(ANSWER)]), "You do what you are asked for.")


@brain.tool(effect=Effect.READ_ONLY)
def work() -> str:
    """Do the work."""
    return "done"


def three_steps(directory: Path, *, scale: float) -> dict[str, Any]:
    """Measure the latency of single executions in ms, and the executions per second of a batch.

    `scale` multiplies their numbers, for smoke tests.
    """
    single, batch = (max(2, round(count * scale)) for count in (SINGLE, BATCH))
    with stage(directory, task_events=False, app=APP) as on:
        _run(on, min(batch, 20))
        latency_ms = [_run(on, 1)[0].to_result_ms for _ in range(single)]
        begin_ms = time.time() * 1000
        took_ms = max(outcome.result_at_ms for outcome in _run(on, batch)) - begin_ms
    return {
        "single": single,
        "batch": batch,
        "p50_ms": round(percentile(latency_ms, 50), 1),
        "p95_ms": round(percentile(latency_ms, 95), 1),
        "step_ms": round(percentile(latency_ms, 50) / STEPS, 1),
        "per_s": round(batch * 1000 / took_ms, 1),
    }


def _run(on: Stage, count: int) -> Sequence[Outcome]:
    """Submit so many at once, and wait for their chains' ends."""
    load = submit(on.client, count)
    wait_finished(on, load.turns)
    return read_outcomes(on, load.turns, _check)


def _check(_stage: Stage, turn: Submitted, result: TurnResult, _events: object) -> None:
    if (result.text, result.steps, result.tool_calls) != (ANSWER, 2, 1):
        raise BenchFailure(f"turn {turn.turn_id} did not make its three steps: {result!r}")
