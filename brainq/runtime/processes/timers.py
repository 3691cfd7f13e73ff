"""Timers: one thread of the process runs every action that is due. A timer costs a heap entry; the standard library's
costs a thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from brainq.runtime.observe.threads import KeptThread, start_thread

LONGEST_WAIT_S = 3_600.0  # waits for locks have an upper bound, so longer ones are split
_TIDY_EVERY = 1_024


@dataclass(eq=False, slots=True)
class Watch:
    """An action that is due at `due`, by time.monotonic(). `act` is None once it is no longer needed."""

    due: float
    act: Callable[[], object] | None


class Watchdog:
    """A watchdog thread that starts each action when it is due. Each action runs in its own thread, because it may take
    long and must not delay the next.

    A watch without its `act` stays in the heap until it is due. Most calls end early and have the same limit, so few of
    them are the next one due and wake the thread.
    """

    def __init__(self, name: str = "brainq-watchdog") -> None:
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Watch]] = []
        self._numbers = itertools.count(1)
        self._thread = KeptThread(name, self._run)

    def add(self, watch: Watch) -> None:
        """Run `watch` when it is due. Raises RuntimeError if the system refuses the thread."""
        self._thread.ensure()
        with self._changed:
            self._push(watch)

    def move(self, watch: Watch, due: float) -> None:
        """Change when an added watch is due. Raises RuntimeError like `add`, and has then changed nothing."""
        if due >= watch.due:
            watch.due = due  # The thread finds the new time when the earlier one has come.
            return
        self._thread.ensure()
        with self._changed:
            watch.due = due
            self._push(watch)

    def close(self) -> None:
        """End the thread. Nothing more is run."""
        self._thread.stop()
        with self._changed:
            self._changed.notify()

    def _push(self, watch: Watch) -> None:
        number = next(self._numbers)
        if number % _TIDY_EVERY == 0:
            self._heap = [entry for entry in self._heap if entry[2].act is not None]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (watch.due, number, watch))
        if self._heap[0][2] is watch:
            self._changed.notify()

    def _run(self, stopping: threading.Event) -> None:
        while (act := self._next(stopping)) is not None:
            try:
                start_thread("brainq-cut", act)
            except RuntimeError:  # the system refuses more threads, so the others must wait
                act()

    def _next(self, stopping: threading.Event) -> Callable[[], object] | None:
        """Return the next action that is due, as soon as there is one, or None once closed."""
        with self._changed:
            while not stopping.is_set():
                wait_s = self._heap[0][0] - time.monotonic() if self._heap else LONGEST_WAIT_S
                if wait_s > 0:
                    self._changed.wait(min(wait_s, LONGEST_WAIT_S))
                    continue
                due, _, watch = heapq.heappop(self._heap)
                if watch.due > due:
                    if watch.act is not None:
                        self._push(watch)
                    continue
                act, watch.act = watch.act, None
                if act is not None:
                    return act
        return None


TIMERS = Watchdog("brainq-timers")
"""The timers of this process, for callers without their own thread."""
