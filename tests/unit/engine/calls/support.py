"""Running one tool with as little as possible around it."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn, OnLate
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.tool import Tool


def context_for(token: DeadlineToken, is_ready: Callable[[], bool] | None = None) -> RunContext:
    return RunContext(
        session_id="s", turn_id="turn", call_id="c1-0", token=token, attempt=2, cwd="/work", is_ready=is_ready
    )


def run(
    executor: BoundedToolExecutor,
    tool: Tool,
    arguments: dict[str, Any] | None = None,
    *,
    limit_s: float = 30.0,
    on_late: OnLate | None = None,
) -> CallReturn:
    return run_in(executor, tool, context_for(DeadlineToken(limit_s)), arguments, on_late=on_late)


def run_in(
    executor: BoundedToolExecutor,
    tool: Tool,
    context: RunContext,
    arguments: dict[str, Any] | None = None,
    *,
    on_late: OnLate | None = None,
) -> CallReturn:
    """How the call ended, from a thread that a function may keep."""
    answered: SimpleQueue[CallReturn] = SimpleQueue()

    def work() -> None:
        ended = executor.run(tool, arguments or {}, context, on_cut=answered.put, on_late=on_late)
        if ended is not None:
            answered.put(ended)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    return answered.get(timeout=60)


def is_running(pid: int) -> bool:
    """False also for a process that is dead and only waits to be reaped."""
    status = Path(f"/proc/{pid}/stat")
    if status.parent.parent.joinpath("self").exists():
        try:
            # A leader that is dead cannot be reaped before its other threads are gone, too.
            is_dead = status.read_text().rpartition(")")[2].split()[0] == "Z"
            return not is_dead or len(os.listdir(f"/proc/{pid}/task")) > 1
        except (FileNotFoundError, ProcessLookupError):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
