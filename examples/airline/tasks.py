"""The 50 tasks that the tools package carries, as sessions like the recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from examples.airline.database import airline_sha256
from examples.airline.package import WRITE_TOOLS, ToolError, base_airline, ground_truth, run_tool
from examples.airline.recorded import RecordedCall, RecordedSession, RecordedStep, RecordedTurn


def task_sessions() -> Iterator[RecordedSession]:
    """One session a task, of one turn: the calls that solve it, one a step.

    The hash is that of an airline on which the same calls were run directly, here and now.
    """
    base = json.dumps(base_airline())
    for number, (task, calls) in enumerate(ground_truth().items(), 1):
        steps = [
            RecordedStep("", (RecordedCall(tool, arguments, "write" if tool in WRITE_TOOLS else "read"),))
            for tool, arguments in calls
        ]
        turn = RecordedTurn(f"Please solve task {task}.", (*steps, RecordedStep("It is done.", ())))
        yield RecordedSession(f"run-{number:03}", f"task {task}", (turn,), _run_directly(base, calls))


def _run_directly(base: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    airline = json.loads(base)
    for tool, arguments in calls:
        try:
            run_tool(airline, tool, arguments)
        except ToolError:
            pass  # a refusal is an answer, and changes nothing
    return airline_sha256(airline)
