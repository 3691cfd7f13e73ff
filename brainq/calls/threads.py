"""Daemon threads that are used again and again, and may be abandoned."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]
_numbers = itertools.count(1)


class ToolThreads:
    """Runs each piece of work in a thread of its own; a thread whose work ended takes the next.

    There is no upper bound: a thread that was abandoned must not keep the next call from starting. Threads
    are daemons, so an abandoned one does not keep the process from exiting.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Work | None]] = []
        self._pid = os.getpid()
        self._closed = False

    def start(self, work: Work) -> None:
        """Begin `work`, which must not raise, and return at once."""
        if self._pid != os.getpid():  # forked: the threads stayed in the parent
            self._idle, self._pid = [], os.getpid()
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue[Work | None]()
            name = f"brainq-tool-{next(_numbers)}"
            threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True).start()
        inbox.put(work)

    def close(self) -> None:
        """Let the idle threads end, and busy ones after their work."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _serve(self, inbox: SimpleQueue[Work | None]) -> None:
        while (work := inbox.get()) is not None:
            work()
            del work  # an idle thread must not keep the last call's arguments alive
            self._idle.append(inbox)
            if self._closed:  # closed while this thread was busy: nobody else will wake it
                self.close()
