"""One call in flight: the race between its function's end and the cut, the grace it has, and a thread of its
own.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from brainq.calls.results import CallReturn, checked_child_turn, jsonable, one_line, outcome_of_raise
from brainq.contracts.call import ChildTurn, ServerTask, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.observe.tracebacks import print_user_traceback
from brainq.tools.context import RunContext
from brainq.tools.results import OutcomeUnknown, Partial, Pending, ToolError, split_files
from brainq.tools.tool import Tool

# One call in flight: the race between its function's end and the cut.

OnCut = Callable[[ToolTimeout], object]

OnLate = Callable[[ToolOutcome], object]

COOPERATIVE_GRACE_S = 0.25  # for tools that take a RunContext: they can see their token

GRACE_S = 0.05  # for the others: an end that fell together with the deadline

_log = logging.getLogger("brainq.calls")


@dataclass(eq=False, slots=True)
class Attempt:
    """The first of the function's end and the cut decides; an end that comes second goes to `on_late`, once.

    ended   how the call ended, once that is decided
    """

    context: RunContext
    on_late: OnLate | None = None
    ended: CallReturn | None = None
    _started: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def returned(self, value: Any) -> CallReturn | None:
        """The function returned: how the call ended by it, or None if it was cut before.

        Called in the function's thread: making JSON of the value counts as its time.
        """
        ended: CallReturn
        try:
            if isinstance(value, Pending | ServerTask):
                ended = value
            elif isinstance(value, ChildTurn):
                ended = checked_child_turn(value)
            else:
                plain_value, files = split_files(value.value if isinstance(value, Partial) else value)
                plain = jsonable(plain_value)
                if files:
                    self.context.replace_files(files)
                ended = ToolSuccess(
                    value=plain,
                    partial=isinstance(value, Partial),
                    latency_ms=self._elapsed_ms(),
                    block_tool=self.context.outputs().block_tool,
                )
        except Exception as error:
            return self.raised(error)
        return self._end(ended)

    def raised(self, error: BaseException) -> CallReturn | None:
        """The function raised; as `returned`. After the deadline that is how a tool that watches its token gives up."""
        if not isinstance(error, ToolError | OutcomeUnknown | asyncio.CancelledError):
            print_user_traceback(error, f"call {self.context.call_id} of turn {self.context.turn_id} raised")
        block_tool = self.context.outputs().block_tool
        outcome = outcome_of_raise(error, self._elapsed_ms(), block_tool=block_tool)
        if not self.context.token.is_expired or isinstance(error, ToolError | OutcomeUnknown):
            return self._end(outcome)
        # At least 1 ms: 0 says that it was never started.
        timeout = ToolTimeout(after_ms=max(1, outcome.latency_ms), latency_ms=outcome.latency_ms)
        # A cancelled function did not end by itself: it tells nothing of what was done until then.
        return self._end(timeout, timeout if isinstance(error, asyncio.CancelledError) else outcome)

    def never_started(self) -> None:
        """The function was not called in time, and will not be."""
        self._end(ToolTimeout(after_ms=0))

    def cut(self, settle: OnCut | None = None) -> CallReturn:
        """End the call now, unless it has ended: as a timeout of a function that still runs.

        settle   called with that timeout. The function's end waits for it, so that what is late is reported after it
        """
        with self._lock:
            if self.ended is None:
                self.context.seal()
                elapsed_ms = self._elapsed_ms()
                timeout = ToolTimeout(after_ms=max(1, elapsed_ms), still_running=True, latency_ms=elapsed_ms)
                self.ended = timeout
                if settle is not None:
                    settle(timeout)
            return self.ended

    def _end(self, ended: CallReturn, if_late: ToolOutcome | None = None) -> CallReturn | None:
        """`if_late` is what is reported of an end that comes after the cut, where that is another."""
        with self._lock:
            if self.ended is None:
                self.ended = ended
                return ended
        if self.on_late is not None:
            try:
                self.on_late(if_late or self._late(ended))
            except Exception as error:
                _log.error(
                    "a late outcome was not recorded turn_id=%s call_id=%s error=%s",
                    self.context.turn_id,
                    self.context.call_id,
                    one_line(error),
                )
        return None

    def _late(self, ended: CallReturn) -> ToolOutcome:
        # Nobody waits for an outside result of a call that was given up: that its function has ended is all.
        if isinstance(ended, Pending | ChildTurn | ServerTask):
            elapsed_ms = self._elapsed_ms()
            return ToolTimeout(after_ms=max(1, elapsed_ms), latency_ms=elapsed_ms)
        return ended

    def _elapsed_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)


# How long a call has after its token expired, before it is cut off.


@dataclass(frozen=True, slots=True)
class CancelGrace:
    """After its deadline a tool that takes a RunContext has 0.25 s, another one 0.05 s. After a cancel one that takes a
    RunContext, or that changes something, has `cancel_s`: how it ends is worth more than the wait."""

    cancel_s: float = COOPERATIVE_GRACE_S

    def seconds_for(self, tool: Tool, *, is_cancelled: bool) -> float:
        """Seconds."""
        usual = GRACE_S if tool.context_param is None else COOPERATIVE_GRACE_S
        if is_cancelled and (tool.context_param is not None or not tool.spec.effect.is_read):
            return max(usual, self.cancel_s)
        return usual


# A thread for one call, where the caller's own cannot be abandoned.

Abandon = Callable[[Callable[[], str]], None]

"""Answers for a call whose function keeps its thread: with what the given function, which settles the call, returns or
raises. Called from another thread."""


def run_in_own_thread(work: Callable[[Abandon], str]) -> str:
    """What `work` returns or raises; or what it was abandoned with, which it is given the means for."""
    answer: Future[str] = Future()
    run = contextvars.copy_context().run  # spans opened here stay the parents of those opened there

    def abandon(settle: Callable[[], str]) -> None:
        _set_answer(answer, settle)

    def serve() -> None:
        _set_answer(answer, lambda: work(abandon))

    threading.Thread(target=run, args=(serve,), name="brainq-call", daemon=True).start()
    return answer.result()


def _set_answer(answer: Future[str], work: Callable[[], str]) -> None:
    try:
        did = work()
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():  # else it was abandoned, and has ended now
            answer.set_result(did)
