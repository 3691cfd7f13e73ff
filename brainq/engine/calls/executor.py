"""The executor of tools. It ends each call no later than its deadline, whatever the tool's function does."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from brainq.contracts.call import ToolTimeout
from brainq.engine.calls.function_run import (
    COOPERATIVE_GRACE_S,
    GRACE_S,
    CallReturn,
    CancelGrace,
    FunctionRun,
    OnCut,
    OnLate,
)
from brainq.engine.calls.tool_processes import ToolProcesses
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.tool import Tool
from brainq.runtime.processes.threads import LoopThread, UserCodeExit, contained
from brainq.runtime.processes.timers import LONGEST_WAIT_S, Watch, Watchdog

TOOL_LOOP = LoopThread("brainq-tool-loop")  # the only event loop of this process for async tools


class LoopCall:
    """A call of an async function. The function runs on the process's event loop while the caller's thread waits. At
    the deadline the function is cancelled, and abandoned if it does not end."""

    def __init__(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, grace: CancelGrace, on_late: OnLate | None
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._grace = grace
        self._run = FunctionRun(context, on_late)
        self._woken: SimpleQueue[None] = SimpleQueue()  # filled when the function ends or its token is cancelled
        self._loop = TOOL_LOOP.loop
        # The caller's context variables are copied, so that a tool's spans are children of the call's span.
        self._variables = contextvars.copy_context()
        self._task: asyncio.Task[Any] | None = None

    def run(self) -> CallReturn:
        """Call the function and return how it ended."""
        token = self._context.token
        stop_listening = token.on_cancel(self._wake)
        self._loop.call_soon_threadsafe(self._begin)
        while not self._has_ended and (remaining_s := token.remaining_s) > 0:
            self._wait(remaining_s)
        stop_listening()
        if (grace_s := self._grace.seconds_for(self._tool, is_cancelled=token.is_cancelled)) > GRACE_S:
            self._wait_at_most(grace_s)
        if not self._has_ended:
            self._loop.call_soon_threadsafe(self._cancel)
            self._wait_at_most(GRACE_S)
        return self._run.cut()

    @property
    def _has_ended(self) -> bool:
        return self._run.ended is not None

    def _begin(self) -> None:
        try:
            if self._context.token.is_expired:  # another tool has blocked the loop until now
                self._run.never_started()
            else:
                coroutine = contained(self._tool.name, self._variables.run(self._called))
                self._task = self._loop.create_task(coroutine, context=self._variables)
                # A callback is used instead of a try around the await, because a task that is cancelled before its
                # first step never enters its body.
                self._task.add_done_callback(self._ended)
        except BaseException as error:  # the arguments may not fit the annotations, and user types may raise anything
            self._run.raised(error)
        if self._task is None:
            self._wake()

    def _called(self) -> Any:
        return self._tool.function(**self._tool.keywords(self._arguments, self._context))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._run.raised(asyncio.CancelledError("cancelled"))
        elif (error := task.exception()) is not None:
            self._run.raised(error.raised if isinstance(error, UserCodeExit) else error)
        else:
            self._run.returned(task.result())
        self._wake()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _wake(self) -> None:
        self._woken.put(None)

    def _wait_at_most(self, timeout_s: float) -> None:
        """Wait until the function has ended, but no longer than `timeout_s`."""
        ends_at = time.monotonic() + timeout_s
        while not self._has_ended and (left_s := ends_at - time.monotonic()) > 0:
            self._wait(left_s)

    def _wait(self, timeout_s: float) -> None:
        try:
            self._woken.get(timeout=min(timeout_s, LONGEST_WAIT_S))
        except Empty:
            pass


class BoundedToolExecutor:
    """An executor of tools. There is one per process, and `run` may be called from many threads at once.

    brain_ref        `module:attr` of the brain, from which a child process loads tools with `isolation="process"`
    cancel_grace_s   how long a call may take to end by itself once its turn is cancelled
    """

    def __init__(self, *, brain_ref: str = "", cancel_grace_s: float = COOPERATIVE_GRACE_S) -> None:
        self._grace = CancelGrace(cancel_grace_s)
        self._watchdog = Watchdog()
        self._processes = ToolProcesses(brain_ref, self._grace)

    def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: RunContext,
        *,
        in_child: bool = False,
        on_cut: OnCut,
        on_late: OnLate | None = None,
    ) -> CallReturn | None:
        """Call the tool and return how the call ended. Never raises because of the tool.

        The call ends when the context's token expires or is cancelled. A tool that takes a RunContext then has another
        0.25 s to return a result, and any other tool has 0.05 s. A function may also return `Pending` or `ChildTurn` to
        make its call wait for a result from outside.

        A plain function runs in the caller's thread. If it is cut off, it keeps that thread until it ends: `on_cut`
        receives the outcome from another thread, and this method returns None once the function has ended.

        in_child   run the tool in a process of its own, so that a crash ends only this call
        on_late    called once, after the cut, with the outcome of an abandoned function

        A ToolTimeout with `after_ms=0` means that the function never started. A ToolTimeout with `still_running` means
        that the function was abandoned; its lanes stay taken until `on_late` is called. The outputs in `context` are
        complete once the function has ended.
        """
        token = context.token
        if token.is_expired:
            return ToolTimeout(after_ms=0)
        if in_child or tool.spec.isolation == "process":
            return self._processes.run(tool, arguments, context, token)
        if tool.is_async:
            return LoopCall(tool, arguments, context, self._grace, on_late).run()
        run = FunctionRun(context, on_late)
        watch = Watch(token.ends_at + self._grace.seconds_for(tool, is_cancelled=False), partial(run.cut, on_cut))

        def hasten() -> None:
            ends_at = time.monotonic() + self._grace.seconds_for(tool, is_cancelled=True)
            self._watchdog.move(watch, min(watch.due, ends_at))

        self._watchdog.add(watch)
        token.on_cancel(hasten)
        try:
            # The function runs in a copy of the caller's context variables. Its spans are therefore children of the
            # call's span, and its changes to the variables are dropped.
            value = contextvars.copy_context().run(tool.function, **tool.keywords(arguments, context))
        except BaseException as error:  # including SystemExit, which must not end the caller's thread
            return run.raised(error)
        else:
            return run.returned(value)
        finally:
            watch.act = None

    def close(self) -> None:
        """Stop the watchdog and kill every child process. Abandoned functions run until they end."""
        self._watchdog.close()
        self._processes.close()
