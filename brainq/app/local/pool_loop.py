"""The threads that answer the messages of one pool's queues.

One thread waits at Redis. When a message comes, another thread waits in its place, and it answers the message itself:
no message is handed from thread to thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from brainq.adapters.redis.queues import MAX_WAIT_S, Message, QueueReader
from brainq.app.local.answers import Answers
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.processes.later_threads import LATER_THREADS
from brainq.runtime.processes.pool_threads import PoolThreads

log = logger("brainq.local")
AGAIN_S = 0.5  # after Redis could not be read
FREE_WAIT_S = 0.05  # for a thread of the pool, before it looks whether it drains
LOOK_S, LEAVE_LOOK_S = 0.01, 0.001  # while threads end


class PoolLists:
    """The lists of a pool's queues, in the order in which they are read."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    def readable(self) -> tuple[Sequence[str], float]:
        """Return the lists to take the next message from, and for how many seconds to wait for one."""
        return self.keys, MAX_WAIT_S

    def begin(self, message: Message) -> Callable[[], object]:
        """Note that a message is answered. Returns what notes its end."""
        return _nothing


class FinalizerLists(PoolLists):
    """The finalizer's lists. Later work leaves threads free for steps that lead to results.

    results: the lists of the steps that lead to results.
    """

    def __init__(self, keys: Sequence[str], results: Sequence[str], threads: int) -> None:
        super().__init__(keys)
        self._results = tuple(results)
        self._later: dict[str, tuple[str, float]] = {}
        LATER_THREADS.follow(threads, self._later)

    def readable(self) -> tuple[Sequence[str], float]:
        if LATER_THREADS.free:
            return self.keys, MAX_WAIT_S
        return self._results, LATER_THREADS.looks_again_s()

    def begin(self, message: Message) -> Callable[[], object]:
        if message.key in self._results:
            return _nothing
        tag = f"{id(message)}"
        self._later[tag] = (tag, time.monotonic())
        return partial(self._later.pop, tag)


def _nothing() -> None:
    """Do nothing: a result from outside occupies no thread of the pool."""


class Visit:
    """The answer to one message, until it has ended or was abandoned to its function."""

    def __init__(self, loop: PoolLoop, message: Message) -> None:
        self._loop = loop
        self._message = message
        self._leave = [loop.enter(message)]  # removed by whoever ends it: the thread, or the caller of `abandon`

    def run(self) -> None:
        """Answer the message. A failure is logged: the sweeper rings again for what is not done."""
        try:
            self._loop.answers.answer(self._message.text, self.abandon)
        except BaseException as failure:  # SystemExit, too: it must not cost the pool a thread
            if not self._loop.is_closed:
                log.error("a queue message could not be answered, and its work is tried again", failure=failure)

    def abandon(self, settle: Callable[[], str]) -> None:
        """End the visit now, from another thread, while its function keeps the visit's thread."""
        try:
            settle()
        except Exception as failure:
            log.error("call not settled", failure=failure)
        self.end()

    def end(self) -> bool:
        """Give the thread back to its pool. Returns False if that was done before."""
        try:
            leave = self._leave.pop()  # one atomic step: only one caller gets it
        except IndexError:
            return False
        leave()
        return True


class PoolLoop:
    """The threads of one pool. They are started when they are needed.

    pool: the pool's name in `budget`, which counts the threads that are in use.
    answers: the machines.
    """

    def __init__(self, pool: str, lists: PoolLists, reader: QueueReader, answers: Answers, budget: PoolThreads) -> None:
        self.pool = pool
        self.answers = answers
        self.is_draining = False
        self.is_closed = False
        self._lists = lists
        self._reader = reader
        self._budget = budget
        self._place = threading.Lock()  # held by the thread that waits at Redis
        self._lock = threading.Lock()
        self._waiting = 0  # threads that wait at Redis, or for their turn to do so
        self._busy = 0
        self._outage = OutageLog(log, f"reading the queues of pool {pool}")

    @property
    def busy(self) -> int:
        """The number of messages that are being answered."""
        return self._busy

    @property
    def has_ended(self) -> bool:
        """Whether no thread takes messages any more."""
        return self._waiting == 0

    def begin(self) -> None:
        """Start the first thread. Raises RuntimeError if the system refuses it."""
        with self._lock:
            self._waiting += 1
        try:
            start_thread(f"brainq-pool-{self.pool}", self._run)
        except RuntimeError:
            with self._lock:
                self._waiting -= 1
            raise

    def drain(self) -> None:
        """Take no more messages. A thread that waits for one ends."""
        self.is_draining = True
        self._reader.wake()

    def join(self, until: float) -> bool:
        """Wait, after `drain`, until all messages are answered.

        Returns False if that is not so at `until`, by time.monotonic().
        """
        while (self._busy or not self.has_ended) and time.monotonic() < until:
            self._hang_up()
            time.sleep(LOOK_S)
        return not self._busy and self.has_ended

    def leave(self) -> None:
        """Wait, after `drain`, until no thread waits for a message. Those that answer one are left alone."""
        while not self.has_ended:
            self._hang_up()
            time.sleep(LEAVE_LOOK_S)

    def _hang_up(self) -> None:
        if not self.has_ended:
            self._reader.wake()  # it may have begun to wait just now

    def close(self) -> None:
        """Close the connection. Whatever still runs is no longer reported."""
        self.is_closed = self.is_draining = True
        self._reader.close()

    def enter(self, message: Message) -> Callable[[], object]:
        """Count a message that is answered from now on. Returns what uncounts it."""
        end = self._lists.begin(message)
        with self._lock:
            self._busy += 1

        def leave() -> None:
            end()
            self._budget.give_back(self.pool)
            with self._lock:
                self._busy -= 1

        return leave

    def _run(self) -> None:
        while (message := self._next()) is not None:
            visit = Visit(self, message)
            self._let_another_wait()
            visit.run()
            if not visit.end():
                return  # its function had kept this thread, and another has replaced it
            with self._lock:
                self._waiting += 1

    def _next(self) -> Message | None:
        """Return the next message, with a thread of the budget for it. Returns None if no more are taken."""
        try:
            with self._place:
                return self._take()
        finally:
            with self._lock:
                self._waiting -= 1

    def _take(self) -> Message | None:
        while not self.is_draining:
            if not self._budget.wait_free(self.pool, FREE_WAIT_S):
                continue
            try:
                message = self._reader.pop(*self._lists.readable())
            except Exception as failure:
                if not self.is_draining:
                    self._outage.failed(failure)
                    time.sleep(AGAIN_S)
                continue
            self._outage.worked()
            if message is not None and self._admit(message):
                return message
        return None

    def _admit(self, message: Message) -> bool:
        """Take a thread of the budget. Another message may have taken the last one meanwhile, which is waited for."""
        while not self.is_draining:
            if self._budget.try_take(self.pool):
                return True
            self._budget.wait_free(self.pool, FREE_WAIT_S)
        self._reader.put_back(message)
        return False

    def _let_another_wait(self) -> None:
        """Have another thread wait for the next message, if none does."""
        with self._lock:
            if self._waiting or self.is_draining:
                return
        try:
            self.begin()
        except RuntimeError as refused:  # this thread waits again after its message
            log.warning("the system refuses a thread, so the existing ones must do", failure=refused)
