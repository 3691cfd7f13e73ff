"""BoundedToolExecutor: runs a tool's function, and says how its call ended at the deadline at the latest, whatever the
function does.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from brainq.calls.function_run import COOPERATIVE_GRACE_S, GRACE_S, CallReturn, CancelGrace, FunctionRun, OnCut, OnLate
from brainq.calls.tool_processes import ToolProcesses
from brainq.contracts.call import ToolTimeout
from brainq.processes.threads import LoopThread, UserCodeExit, contained
from brainq.processes.timers import LONGEST_WAIT_S, Watch, Watchdog
from brainq.tools.context import RunContext
from brainq.tools.tool import Tool

TOOL_LOOP = LoopThread("brainq-tool-loop")  # the one event loop of this process for async tools


class LoopCall:
    """A call of an async function: it runs on the process's one event loop, and the caller's thread waits. At its
    deadline it is cancelled, and abandoned if it does not end by that.
    """

    def __init__(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, grace: CancelGrace, on_late: OnLate | None
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._grace = grace
        self._run = FunctionRun(context, on_late)
        self._woken: SimpleQueue[None] = SimpleQueue()  # it ended, or its token was cancelled
        self._loop = TOOL_LOOP.loop
        # The caller's context variables go along, so that a tool's spans hang under the call's.
        self._variables = contextvars.copy_context()
        self._task: asyncio.Task[Any] | None = None

    def run(self) -> CallReturn:
        """Call the function, and say how it ended."""
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
            if self._context.token.is_expired:  # another tool blocked the loop until now
                self._run.never_started()
            else:
                coroutine = contained(self._tool.name, self._variables.run(self._called))
                self._task = self._loop.create_task(coroutine, context=self._variables)
                # Not a try around the await: a task that is cancelled before its first step never gets there.
                self._task.add_done_callback(self._ended)
        except BaseException as error:  # arguments that do not fit the annotations; a type of the user's may raise all
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
        """Until it has ended."""
        ends_at = time.monotonic() + timeout_s
        while not self._has_ended and (left_s := ends_at - time.monotonic()) > 0:
            self._wait(left_s)

    def _wait(self, timeout_s: float) -> None:
        try:
            self._woken.get(timeout=min(timeout_s, LONGEST_WAIT_S))
        except Empty:
            pass


class BoundedToolExecutor:
    """One a process; `run` may be called from many threads at once.

    brain_ref        `module:attr` of the brain: tools with `isolation="process"` are loaded from it in the child
    cancel_grace_s   how long a call has to end by itself once its turn is cancelled
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
        """Call the tool and say how it ended; never raises for what the tool does.

        The call ends when the context's token expires or is cancelled. A tool that takes a RunContext has 0.25 s more
        to return what it has, another one 0.05 s. A function may also return `Pending` or `ChildTurn`: then its call is
        to wait for somebody outside.

        A plain function runs in the caller's thread. One that is cut off keeps that thread until it ends: then how the
        call ended goes to `on_cut`, from another thread, and this returns None when the function has ended.

        in_child  run it in a process where nothing else runs: what kills that ends this call, and no other
        on_late   called once, after the cut, with how an abandoned function ended in the end

        A ToolTimeout after 0 ms says that it never started; `still_running`, that it was abandoned: its lanes must
        stay taken until `on_late`. What it left in `context` is complete once it has ended; nothing is added later.
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
            # In a copy of the caller's context variables: its spans hang under the call's, and what it sets is gone.
            value = contextvars.copy_context().run(tool.function, **tool.keywords(arguments, context))
        except BaseException as error:  # SystemExit, too: it must not end the caller's thread
            return run.raised(error)
        else:
            return run.returned(value)
        finally:
            watch.act = None

    def close(self) -> None:
        """End the watchdog and every child process. Abandoned functions go on until they end."""
        self._watchdog.close()
        self._processes.close()
