"""The reference turn: three reads and one write, then the answer, then eight finalizer steps.

The workers load this module as BRAINQ_APP. Latencies are seconds, from BENCH_MODEL_S (each model step),
BENCH_READ_S, BENCH_WRITE_S and BENCH_CALLBACK_S (`on_usage`); none are given for throughput.
"""

from __future__ import annotations

import os
import time

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.callbacks import TurnEnd, UsageInfo
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.scripted import calls, says
from lab.bench import noop_task

__all__ = ["brain", "noop_task"]

MODEL_S = float(os.environ.get("BENCH_MODEL_S", "0"))
READ_S = float(os.environ.get("BENCH_READ_S", "0"))
WRITE_S = float(os.environ.get("BENCH_WRITE_S", "0"))
CALLBACK_S = float(os.environ.get("BENCH_CALLBACK_S", "0"))

ANSWER = "Three notes were read and one was written."
MODEL_STEPS, TOOL_CALLS = 2, 4
FINALIZER_STEPS = ("citations", "usage", "log", "result", "decision", "memory", "learner", "end")
"""`log` and `decision` write SQL."""
DURABLE_STEPS = MODEL_STEPS + TOOL_CALLS + len(FINALIZER_STEPS)
"""Of a turn: each is claimed, kept and never made twice by itself."""


class NoStep:
    """A finalizer step that does nothing: what is measured is the step, not its work."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_configured(self, brain: object) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        return None


brain = Brain(
    "bench",
    ScriptedProvider(
        [
            calls(
                ("read_note", {"path": "plans/monday"}),
                ("read_note", {"path": "plans/tuesday"}),
                ("read_note", {"path": "plans/wednesday"}),
                ("write_note", {"path": "plans/week", "text": "Monday, Tuesday and Wednesday in one note."}),
            ),
            says(ANSWER),
        ],
        latency_s=MODEL_S,
    ),
    "You keep the notes of one person. Read what is asked for, write what is asked for, and say what you did.",
    final_steps=[NoStep("memory"), NoStep("learner")],
)


@brain.tool(effect=Effect.READ_ONLY)
def read_note(path: str) -> str:
    """Read one note."""
    if READ_S:
        time.sleep(READ_S)
    return f"# {path}\nBuy apples. Call the dentist. Water the plants."


@brain.tool(effect=Effect.LOCAL_WRITE)
def write_note(path: str, text: str) -> str:
    """Write one note."""
    if WRITE_S:
        time.sleep(WRITE_S)
    return f"wrote {len(text)} characters to {path}"


@brain.on_usage
def count_usage(usage: UsageInfo) -> None:
    """Do nothing. Its presence makes the usage step part of the chain."""
    if CALLBACK_S:
        time.sleep(CALLBACK_S)


@brain.on_turn_end
def turn_ended(ended: TurnEnd) -> None:
    """Do nothing. Its presence makes the end step part of the chain."""
