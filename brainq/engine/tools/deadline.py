"""The token by which a running tool knows how much time it has, and whether it was cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from brainq.runtime.processes.threads import as_exception

DEADLINE = "deadline"
CANCELLED = "cancelled"


class DeadlineToken:
    """A token that expires at a moment of this process's monotonic clock, or earlier when it is cancelled.

    A tool that checks `is_expired` between its pieces of work, and then returns what it has as `Partial(value)`, is
    cooperative: it has 0.25 s after the expiry before it is cut off. It is safe to use from any thread, and
    `wait_async` also from an event loop.

    ends_at: by time.monotonic(). The runner of the tool may set it once it is known.
    """

    __slots__ = ("_cancelled", "_listeners", "_lock", "_reason", "ends_at")

    def __init__(self, remaining_s: float) -> None:
        """Expire in `remaining_s` seconds from now. Zero or less makes an expired token."""
        self.ends_at = time.monotonic() + remaining_s
        self._cancelled = threading.Event()
        self._reason = ""
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    def from_budget(cls, budget: Any, cap_s: float) -> Self:
        """Return a token for one call of at most `cap_s` seconds, within the deadline of its TurnBudget."""
        return cls(budget.per_tool_remaining_s(cap_s))

    @property
    def is_expired(self) -> bool:
        """True once the moment has passed or the token was cancelled. It is never False again."""
        return self._cancelled.is_set() or time.monotonic() >= self.ends_at

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def remaining_s(self) -> float:
        """The seconds until the expiry, never below 0."""
        return 0.0 if self._cancelled.is_set() else max(0.0, self.ends_at - time.monotonic())

    @property
    def reason(self) -> str:
        """Why it expired: the reason of `cancel`, or else `deadline`. Empty before."""
        if self._cancelled.is_set():
            return self._reason
        return DEADLINE if self.is_expired else ""

    def cancel(self, reason: str = CANCELLED) -> None:
        """Expire now, for this reason. Later calls change nothing. Once all listeners were called, raises the exception
        of the first that failed."""
        with self._lock:
            if self._cancelled.is_set():
                return
            self._reason = reason
            self._cancelled.set()
            listeners, self._listeners = self._listeners, []
        failures: list[Exception] = []
        for listener in listeners:
            try:
                listener()
            except BaseException as failure:  # it is the tool's own; the engine's cut must happen all the same
                failures.append(as_exception("a listener of a cancel", failure))
        if failures:
            raise failures[0]

    def wait(self, timeout_s: float) -> bool:
        """Sleep at most `timeout_s`, or until the expiry. Returns `is_expired`.

        Use it in a plain function in place of `time.sleep`.
        """
        self._cancelled.wait(max(0.0, min(timeout_s, self.remaining_s)))
        return self.is_expired

    async def wait_async(self, timeout_s: float) -> bool:
        """Wait like `wait`, in async functions: the event loop continues meanwhile."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        remove = self.on_cancel(lambda: _wake(loop, woken))
        try:
            await asyncio.wait_for(woken.wait(), max(0.0, min(timeout_s, self.remaining_s)))
        except TimeoutError:
            pass
        finally:
            remove()
        return self.is_expired

    def on_cancel(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once when `cancel` is called, from its thread, which it must not block. If the token is
        cancelled already, call it at once.

        Returns a function that removes the listener. A deadline that passes calls no listener.
        """
        with self._lock:
            if not self._cancelled.is_set():
                self._listeners.append(listener)
                return lambda: self._remove(listener)
        listener()
        return _nothing

    def _remove(self, listener: Callable[[], None]) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)


def _wake(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(woken.set)
    except RuntimeError:  # the loop was closed in the meantime, and its waiters with it
        pass


def _nothing() -> None:
    return None
