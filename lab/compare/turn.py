"""The reference turn as plain data: what the model says, what the tools answer, which steps follow.

How a model or a tool is waited for is each system's own affair; how long it takes is said here. The same turn as
`lab/bench/brain.py`. Latencies are seconds, and zero for throughput.
"""

from __future__ import annotations

import os

MODEL_S = float(os.environ.get("BENCH_MODEL_S", "0"))
READ_S = float(os.environ.get("BENCH_READ_S", "0"))
WRITE_S = float(os.environ.get("BENCH_WRITE_S", "0"))

QUESTION = "Make one note of the first three days."
READS = ("plans/monday", "plans/tuesday", "plans/wednesday")
WRITE = ("plans/week", "Monday, Tuesday and Wednesday in one note.")
ANSWER = "Three notes were read and one was written."

FINAL_STEPS = ("citations", "usage", "log", "result", "decision", "memory", "learner", "end")
"""`log` and `decision` write an SQL row each; with `result` the turn's result is there to be read; the others do
nothing. One after the other, each durable by itself."""


def note(path: str) -> str:
    return f"# {path}\nBuy apples. Call the dentist. Water the plants."


def wrote(path: str, text: str) -> str:
    return f"wrote {len(text)} characters to {path}"
