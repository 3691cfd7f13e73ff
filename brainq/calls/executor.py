"""Runs a tool's function, and comes back at the deadline whatever the function does."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping
from functools import partial
from typing import Any

from brainq.calls.attempt import COOPERATIVE_GRACE_S, GRACE_S, Attempt, OnLate
from brainq.calls.ended import Ended
from brainq.calls.grace import Grace
from brainq.calls.isolation import ToolProcesses
from brainq.calls.loop import tool_loop
from brainq.calls.threads import ToolThreads
from brainq.contracts.outcome import ToolTimeout
from brainq.tools.context import RunContext
from brainq.tools.deadline import DeadlineToken
from brainq.tools.tool import Tool


class BoundedToolExecutor:
    """One a process; `run` may be called from many threads at once.

    brain_ref        `module:attr` of the brain: tools with `isolation="process"` are loaded from it in the child
    cancel_grace_s   how long a call has to end by itself once its turn is cancelled
    """

    def __init__(self, *, brain_ref: str = "", cancel_grace_s: float = COOPERATIVE_GRACE_S) -> None:
        self._threads = ToolThreads()
        self._grace = Grace(cancel_grace_s)
        self._processes = ToolProcesses(brain_ref, self._grace)

    def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: RunContext,
        token: DeadlineToken,
        *,
        on_late: OnLate | None = None,
    ) -> Ended:
        """Call the tool and say how it ended; never raises for what the tool does.

        token     the one in `context`: the call ends when it expires or is cancelled. A tool that takes a
                  RunContext has 0.25 s more to return what it has, another one 0.05 s
        on_late   called once, in the function's thread, with how an abandoned function ended in the end

        A function may also return `Pending` or `ChildTurn`: then its call is to wait for somebody outside.
        A ToolTimeout after 0 ms says that it never started; `still_running`, that it was abandoned: its lanes must
        stay taken until `on_late`. What it left in `context` is complete when this returns; nothing is added later.
        """
        if token.is_expired:
            return ToolTimeout(after_ms=0)
        if tool.spec.isolation == "process":
            return self.run_apart(tool, arguments, context, token)
        attempt = Attempt(context, token, on_late)
        stop_listening = token.on_cancel(attempt.wake)
        try:
            if tool.is_async:
                return self._run_async(tool, arguments, context, attempt)
            return self._run_plain(tool, arguments, context, attempt)
        finally:
            stop_listening()

    def run_apart(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, token: DeadlineToken
    ) -> Ended:
        """Like `run`, in a process where nothing else runs: what kills it ends this call, and no other."""
        return self._processes.run(tool, arguments, context, token)

    def close(self) -> None:
        """End the idle threads and every child process. Abandoned functions go on until they end."""
        self._threads.close()
        self._processes.close()

    def _run_plain(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, attempt: Attempt
    ) -> Ended:
        def work() -> None:
            try:
                value = tool.function(**tool.keywords(arguments, context))
            except BaseException as error:  # SystemExit, too: it must not end a pooled thread
                attempt.raised(error)
            else:
                attempt.returned(value)

        try:
            # The caller's context variables go along, so that a tool's spans hang under the call's.
            self._threads.start(partial(contextvars.copy_context().run, work))
        except RuntimeError as error:  # the system gives no more threads
            attempt.raised(error)
        return (
            attempt.wait_until_expiry()
            or attempt.wait_at_most(self._grace.of(tool, context.token))
            or attempt.cut()
        )

    def _run_async(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, attempt: Attempt
    ) -> Ended:
        loop = tool_loop()
        variables = contextvars.copy_context()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            if context.token.is_expired:  # another tool blocked the loop until now
                attempt.never_started()
                return
            try:
                coroutine = variables.run(lambda: tool.function(**tool.keywords(arguments, context)))
            except Exception as error:  # arguments that do not fit the annotations
                attempt.raised(error)
                return
            task = loop.create_task(coroutine, context=variables)
            tasks.append(task)
            # Not a try around the await: a task that is cancelled before its first step never gets there.
            task.add_done_callback(lambda done: _report(done, attempt))

        loop.call_soon_threadsafe(begin)
        outcome = attempt.wait_until_expiry()
        if outcome is None and (grace_s := self._grace.of(tool, context.token)) > GRACE_S:
            outcome = attempt.wait_at_most(grace_s)
        if outcome is None:
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            outcome = attempt.wait_at_most(GRACE_S)
        return outcome or attempt.cut()


def _report(task: asyncio.Task[Any], attempt: Attempt) -> None:
    if task.cancelled():
        attempt.raised(asyncio.CancelledError("cancelled"))
    elif (error := task.exception()) is not None:
        attempt.raised(error)
    else:
        attempt.returned(task.result())
