"""Runs a tool's function, and says how its call ended at the deadline at the latest, whatever the function does."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from brainq.calls.attempt import COOPERATIVE_GRACE_S, Attempt, OnCut, OnLate
from brainq.calls.ended import Ended
from brainq.calls.grace import Grace
from brainq.calls.isolation import ToolProcesses
from brainq.calls.on_loop import LoopCall
from brainq.calls.watchdog import Watch, Watchdog
from brainq.contracts.outcome import ToolTimeout
from brainq.tools.context import RunContext
from brainq.tools.tool import Tool


class BoundedToolExecutor:
    """One a process; `run` may be called from many threads at once.

    brain_ref        `module:attr` of the brain: tools with `isolation="process"` are loaded from it in the child
    cancel_grace_s   how long a call has to end by itself once its turn is cancelled
    """

    def __init__(self, *, brain_ref: str = "", cancel_grace_s: float = COOPERATIVE_GRACE_S) -> None:
        self._grace = Grace(cancel_grace_s)
        self._watchdog = Watchdog()
        self._processes = ToolProcesses(brain_ref, self._grace)

    def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: RunContext,
        *,
        on_cut: OnCut,
        on_late: OnLate | None = None,
    ) -> Ended | None:
        """Call the tool and say how it ended; never raises for what the tool does.

        The call ends when the context's token expires or is cancelled. A tool that takes a RunContext has 0.25 s more
        to return what it has, another one 0.05 s. A function may also return `Pending` or `ChildTurn`: then its call is
        to wait for somebody outside.

        A plain function runs in the caller's thread. One that is cut off keeps that thread until it ends: then how the
        call ended is told to `on_cut`, from another thread, and this returns None when the function has ended.

        on_late   called once, after the cut, with how an abandoned function ended in the end

        A ToolTimeout after 0 ms says that it never started; `still_running`, that it was abandoned: its lanes must
        stay taken until `on_late`. What it left in `context` is complete once it has ended; nothing is added later.
        """
        token = context.token
        left_s = token.remaining_s
        if left_s <= 0:
            return ToolTimeout(after_ms=0)
        if tool.spec.isolation == "process":
            return self.run_apart(tool, arguments, context)
        if tool.is_async:
            return LoopCall(tool, arguments, context, self._grace, on_late).run()
        attempt = Attempt(context, on_late)
        due = time.monotonic() + left_s + self._grace.of(tool, is_cancelled=False)
        watch = Watch(due, partial(attempt.cut, on_cut))

        def hasten() -> None:
            watch.due = min(watch.due, time.monotonic() + self._grace.of(tool, is_cancelled=True))
            self._watchdog.add(watch)

        self._watchdog.add(watch)
        token.on_cancel(hasten)
        try:
            # In a copy of the caller's context variables: its spans hang under the call's, and what it sets is gone.
            value = contextvars.copy_context().run(tool.function, **tool.keywords(arguments, context))
        except BaseException as error:  # SystemExit, too: it must not end the caller's thread
            return attempt.raised(error)
        else:
            return attempt.returned(value)
        finally:
            watch.act = None

    def run_apart(self, tool: Tool, arguments: Mapping[str, Any], context: RunContext) -> Ended:
        """Like `run`, in a process where nothing else runs: what kills it ends this call, and no other."""
        return self._processes.run(tool, arguments, context, context.token)

    def close(self) -> None:
        """End the watchdog and every child process. Abandoned functions go on until they end."""
        self._watchdog.close()
        self._processes.close()
