"""One call in flight: the race between its function's end and the cut."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from brainq.calls.ended import Ended, plain_child
from brainq.calls.raised import outcome_of_raise
from brainq.calls.values import jsonable, one_line
from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.outcome import ToolOutcome, ToolSuccess, ToolTimeout
from brainq.observe.raises import tell_raise
from brainq.tools.context import RunContext
from brainq.tools.deadline import DeadlineToken
from brainq.tools.errors import OutcomeUnknown, ToolError
from brainq.tools.partial import Partial
from brainq.tools.pending import Pending

OnLate = Callable[[ToolOutcome], None]

COOPERATIVE_GRACE_S = 0.25  # for tools that take a RunContext: they can see their token
GRACE_S = 0.05  # for the others: an end that fell together with the deadline
_LONGEST_WAIT_S = 3_600.0  # lock waits have an upper bound; longer ones are taken in pieces

_log = logging.getLogger("brainq.calls")


class Attempt:
    """The first of `end` and `cut` decides; an `end` that comes second goes to `on_late`, once.

    error   what the function raised, if it did
    """

    __slots__ = ("_context", "_cut", "_ended", "_lock", "_on_late", "_signals", "_started", "_token", "error")

    def __init__(self, context: RunContext, token: DeadlineToken, on_late: OnLate | None) -> None:
        self._context = context
        self._token = token
        self._on_late = on_late
        self._signals: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._ended: Ended | None = None
        self._cut = False
        self._started = time.monotonic()
        self.error: BaseException | None = None

    @property
    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)

    def returned(self, value: Any) -> None:
        """The function returned. Called in its thread: making JSON of the value counts as its time."""
        partial = isinstance(value, Partial)
        try:
            if isinstance(value, Pending):
                return self._end(value)
            if isinstance(value, ChildTurn):
                return self._end(plain_child(value))
            plain = jsonable(value.value if isinstance(value, Partial) else value)
            self._end(
                ToolSuccess(
                    value=plain,
                    partial=partial,
                    latency_ms=self.elapsed_ms,
                    block_tool=self._context.outputs().block_tool,
                )
            )
        except Exception as error:
            self.raised(error)

    def raised(self, error: BaseException) -> None:
        """The function raised. After the deadline that is how a tool that watches its token gives up."""
        self.error = error
        if not isinstance(error, ToolError | OutcomeUnknown | asyncio.CancelledError):
            tell_raise(error, f"call {self._context.call_id} of turn {self._context.turn_id} raised")
        outcome = outcome_of_raise(error, self.elapsed_ms, block_tool=self._context.outputs().block_tool)
        if self._token.is_expired and not isinstance(error, ToolError | OutcomeUnknown):
            # At least 1 ms: 0 says that it was never started.
            timeout = ToolTimeout(after_ms=max(1, outcome.latency_ms), latency_ms=outcome.latency_ms)
            # A cancelled function did not end by itself: it tells nothing of what was done until then.
            self._end(timeout, timeout if isinstance(error, asyncio.CancelledError) else outcome)
        else:
            self._end(outcome)

    def never_started(self) -> None:
        """The function was not called in time, and will not be."""
        self._end(ToolTimeout(after_ms=0))

    def wake(self) -> None:
        """Let a waiting `wait_until_expiry` look at the token again."""
        self._signals.put(None)

    def wait_until_expiry(self) -> Ended | None:
        """How it ended, or None once the token has expired first."""
        while self._ended is None and (remaining_s := self._token.remaining_s) > 0:
            self._wait(remaining_s)
        return self._ended

    def wait_at_most(self, timeout_s: float) -> Ended | None:
        """How it ended, or None if the function did not end within `timeout_s`."""
        ends_at = time.monotonic() + timeout_s
        while self._ended is None and (left_s := ends_at - time.monotonic()) > 0:
            self._wait(left_s)
        return self._ended

    def cut(self) -> Ended:
        """End it now: as the function did if it just ended, else a timeout of one that still runs."""
        with self._lock:
            if self._ended is not None:
                return self._ended
            self._cut = True
        self._context.seal()
        elapsed_ms = self.elapsed_ms
        return ToolTimeout(after_ms=max(1, elapsed_ms), still_running=True, latency_ms=elapsed_ms)

    def _end(self, ended: Ended, if_late: ToolOutcome | None = None) -> None:
        """`if_late` is what is told of an end that comes after the cut, where that is another."""
        with self._lock:
            late = self._cut
            if not late:
                self._ended = ended
        if not late:
            self._signals.put(None)
        elif self._on_late is not None:
            try:
                self._on_late(if_late or self._late(ended))
            except Exception as error:
                _log.error(
                    "a late outcome was not recorded turn_id=%s call_id=%s error=%s",
                    self._context.turn_id,
                    self._context.call_id,
                    one_line(error),
                )

    def _late(self, ended: Ended) -> ToolOutcome:
        # Nobody waits for an outside result of a call that was given up: that its function has ended is all.
        if isinstance(ended, Pending | ChildTurn):
            return ToolTimeout(after_ms=max(1, self.elapsed_ms), latency_ms=self.elapsed_ms)
        return ended

    def _wait(self, timeout_s: float) -> None:
        try:
            self._signals.get(timeout=min(timeout_s, _LONGEST_WAIT_S))
        except Empty:
            pass
