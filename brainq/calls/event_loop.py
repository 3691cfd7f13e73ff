"""Calls of async functions: they run on the process's one event loop, and the caller's thread waits."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from typing import Any

from brainq.calls.attempt import GRACE_S, Attempt, CancelGrace, OnLate
from brainq.calls.results import CallReturn
from brainq.processes.threads import LoopThread
from brainq.tools.context import RunContext
from brainq.tools.tool import Tool

TOOL_LOOP = LoopThread("brainq-tool-loop")
"""The one event loop of this process for async tools."""

_LONGEST_WAIT_S = 3_600.0  # lock waits have an upper bound; longer ones are taken in pieces


class LoopCall:
    """At its deadline it is cancelled, and abandoned if it does not end by that."""

    def __init__(
        self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, grace: CancelGrace, on_late: OnLate | None
    ) -> None:
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._grace = grace
        self._attempt = Attempt(context, on_late)
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
        return self._attempt.cut()

    @property
    def _has_ended(self) -> bool:
        return self._attempt.ended is not None

    def _begin(self) -> None:
        try:
            if self._context.token.is_expired:  # another tool blocked the loop until now
                self._attempt.never_started()
            else:
                coroutine = self._variables.run(self._called)
                self._task = self._loop.create_task(coroutine, context=self._variables)
                # Not a try around the await: a task that is cancelled before its first step never gets there.
                self._task.add_done_callback(self._ended)
        except Exception as error:  # arguments that do not fit the annotations
            self._attempt.raised(error)
        if self._task is None:
            self._wake()

    def _called(self) -> Any:
        return self._tool.function(**self._tool.keywords(self._arguments, self._context))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._attempt.raised(asyncio.CancelledError("cancelled"))
        elif (error := task.exception()) is not None:
            self._attempt.raised(error)
        else:
            self._attempt.returned(task.result())
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
            self._woken.get(timeout=min(timeout_s, _LONGEST_WAIT_S))
        except Empty:
            pass
