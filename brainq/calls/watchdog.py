"""One thread a process that sees to it that calls are cut off when their time is up."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_LONGEST_WAIT_S = 3_600.0  # lock waits have an upper bound; longer ones are taken in pieces
_TIDY_EVERY = 1_024


@dataclass(eq=False, slots=True)
class Watch:
    """What is to be done at `due`, by time.monotonic(); None once that is no longer wanted."""

    due: float
    act: Callable[[], object] | None


class Watchdog:
    """Does what is due, each in a thread of its own: it may take long, and the next is not to wait for it.

    A watch that is no longer wanted stays in the heap until it is due. Most calls end early and have the same limit, so
    few of them are the next that is due, and wake the thread.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Watch]] = []
        self._numbers = itertools.count(1)
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, watch: Watch) -> None:
        """Look after `watch` from now on; once more where it has become due earlier."""
        number = next(self._numbers)
        with self._changed:
            if number % _TIDY_EVERY == 0:
                self._heap = [entry for entry in self._heap if entry[2].act is not None]
                heapq.heapify(self._heap)
            heapq.heappush(self._heap, (watch.due, number, watch))
            if self._thread is None or not self._thread.is_alive():  # the first, or forked since
                self._thread = threading.Thread(target=self._run, name="brainq-watchdog", daemon=True)
                self._thread.start()
            elif self._heap[0][2] is watch:
                self._changed.notify()

    def close(self) -> None:
        """Let the thread end: nothing more is cut off."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while (act := self._next()) is not None:
            try:
                threading.Thread(target=act, name="brainq-cut", daemon=True).start()
            except RuntimeError:  # the system gives no more threads: the others have to wait
                act()

    def _next(self) -> Callable[[], object] | None:
        """What is due, as soon as something is; None once closed."""
        with self._changed:
            while not self._closed:
                wait_s = self._heap[0][0] - time.monotonic() if self._heap else _LONGEST_WAIT_S
                if wait_s > 0:
                    self._changed.wait(min(wait_s, _LONGEST_WAIT_S))
                    continue
                _, _, watch = heapq.heappop(self._heap)
                act, watch.act = watch.act, None
                if act is not None:
                    return act
        return None
