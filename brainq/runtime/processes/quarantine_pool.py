"""The processes of a quarantine: their sockets, the turns that share each of them, and the turns that wait for a place.

A turn that killed a shared process is found by dividing, into as many parts as there are processes: suspects are spread
over them, and when a process dies, its turns continue in smaller groups, down to one turn in a process.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from brainq.errors import SetupError
from brainq.runtime.leases import process_name
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.processes.child import FrameLostError, SocketChild, receive_frame, send_frame
from brainq.runtime.processes.guard import ProcessGuard

START_S = 60.0  # includes the import of the brain's module
_HELLO = 0  # the number of its first frame
_MAIN = "brainq.app.wiring.quarantine:main"
Frame = dict[str, Any]
MAX_MEMBERS = 16  # turns in one process
FILL_FIRST = 4  # this many share a process before another is started, which costs a second or two of CPU
IDLE_PROCESSES = 1  # kept for the next suspect


class ChildProcess(SocketChild):
    """A child that runs several pieces of work at once, as its parent process sees it.

    `name` is the end of the owner's name in its claims. `on_gone` is called with how the child died, before its pending
    requests fail.
    """

    def __init__(self, settings: Frame, guard: ProcessGuard, on_gone: Callable[[str], object]) -> None:
        super().__init__(guard, _MAIN)
        self._on_gone = on_gone
        self._numbers = itertools.count(_HELLO + 1)
        self._lock = threading.Lock()  # for sending, and for the pending requests
        self._hello: Future[Frame] = Future()
        self._pending: dict[int, Future[Frame]] = {_HELLO: self._hello}
        self._is_gone = False
        self.name = process_name(self.pid)
        # The settings are sent over the socket, so that their secrets appear in no list of processes.
        with contextlib.suppress(OSError):
            send_frame(self.sock, {"settings": settings, "owner": self.name})
        self._ends_at = time.monotonic() + START_S
        try:
            start_thread("brainq-quarantine", self._read)
        except RuntimeError as refused:
            self.kill()
            raise OSError(errno.EAGAIN, str(refused)) from refused

    def wait_ready(self) -> None:
        """Wait until it is ready. Raises SetupError if it cannot start."""
        try:
            hello = self._hello.result(max(0.0, self._ends_at - time.monotonic()))
        except (FrameLostError, TimeoutError) as lost:
            raise SetupError("a quarantine process did not start") from lost
        if "error" in hello:
            raise SetupError(f"a quarantine process did not start: {hello['error']}")

    def request(self, what: Frame) -> Future[Frame]:
        """Send a request. Its answer raises FrameLostError if the child has died, after `on_gone` was called."""
        number, answer = next(self._numbers), Future[Frame]()
        with self._lock:
            if self._is_gone:
                answer.set_exception(FrameLostError("the process has died"))
                return answer
            self._pending[number] = answer
            with contextlib.suppress(OSError):  # it has died, which the reading thread reports
                send_frame(self.sock, {**what, "id": number})
        return answer

    def _read(self) -> None:
        """Pass each answer to its request, until the child has hung up."""
        try:
            while True:
                frame = receive_frame(self.sock)
                with self._lock:
                    answer = self._pending.pop(int(frame.get("id", _HELLO)), None)
                if answer is not None:
                    answer.set_result(frame)
        # Whatever the error is, no more answers are read, and no request may wait for ever.
        except BaseException as lost:
            self._on_gone(self.describe_end())
            with self._lock:
                self._is_gone = True
                pending, self._pending = list(self._pending.values()), {}
            for answer in pending:
                answer.set_exception(FrameLostError(str(lost)))


StartProcess = Callable[[Callable[[str], object]], ChildProcess]
"""A function that starts a process. Its argument is called with how the process died."""


def group_size(died_among: int, processes: int) -> int:
    """Return how many turns may share a process, for a turn that was in a process with `died_among` turns when it died.

    died_among: 0 if none has died since the turn came into quarantine.
    processes: the maximum number of processes. The group is divided into as many parts, and at least into two.
    """
    return -(-died_among // max(2, processes)) if died_among else MAX_MEMBERS


@dataclass(eq=False)
class PooledProcess:
    """A process and the turns that share it.

    size: the number of turns that may share it. Each of them may be in a group of this size.
    members: the number of turns that share it.
    is_retired: whether it accepts no more members, because it died or no longer answers.
    among, how: the number of members at that time, and what happened to the process.
    """

    size: int
    process: ChildProcess | None = None
    members: int = 0
    is_retired: bool = False
    among: int = 0
    how: str = ""

    @property
    def child(self) -> ChildProcess:
        assert self.process is not None
        return self.process

    def can_take(self, size: int, max_members: int) -> bool:
        return not self.is_retired and self.size == size and self.members < min(size, max_members)


def choose_process(shared: Sequence[PooledProcess], size: int, max_processes: int) -> PooledProcess | None:
    """Return the process for a turn that may be in a group of `size`, which may be a new one, or None if there is no
    place yet."""
    idle = [each for each in shared if not each.members and not each.is_retired]
    if idle:
        return idle[0]
    for max_members in (FILL_FIRST, size):
        fitting = [each for each in shared if each.can_take(size, max_members)]
        if fitting:
            return min(fitting, key=lambda each: each.members)
        if max_members == FILL_FIRST and len(shared) < max_processes:
            return PooledProcess(size)
    return None


class ProcessPool:
    """A pool of processes that assigns places in the order of the requests."""

    def __init__(self, start: StartProcess, max_processes: int) -> None:
        self._start = start
        self._max_processes = max_processes
        self._changed = threading.Condition()
        self._shared: list[PooledProcess] = []
        self._queue: deque[object] = deque()

    def join(self, size: int, goes_on: Callable[[], bool], every_s: float) -> PooledProcess | None:
        """Return a place. Returns None if the place is no longer needed, which `goes_on`, called during the wait,
        reports.

        Raises SetupError if no process can be started.
        """
        ticket, ask_at = object(), time.monotonic()
        with self._changed:
            self._queue.append(ticket)
        try:
            while True:
                with self._changed:
                    if self._queue[0] is ticket and (found := self._placed(size)) is not None:
                        return found
                    self._changed.wait(max(0.0, ask_at - time.monotonic()))
                if time.monotonic() >= ask_at:
                    if not goes_on():
                        return None
                    ask_at = time.monotonic() + every_s
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def leave(self, shared: PooledProcess) -> None:
        """Give back a place. A process without members is killed."""
        with self._changed:
            shared.members -= 1
            unneeded = self._take_unneeded()
            self._changed.notify_all()
        _kill_all(unneeded)

    def retire(self, shared: PooledProcess, how: str) -> None:
        """Note that a process died, or no longer answers. It accepts no more members, and is killed when the last one
        has left."""
        with self._changed:
            if not shared.is_retired:
                shared.is_retired, shared.among, shared.how = True, shared.members, how
            unneeded = self._take_unneeded()
            self._changed.notify_all()
        _kill_all(unneeded)

    def close(self) -> None:
        """Kill all processes."""
        with self._changed:
            shared, self._shared = self._shared, []
        _kill_all(shared)

    def _placed(self, size: int) -> PooledProcess | None:
        _kill_all(self._take_unneeded(keep=self._max_processes))
        found = choose_process(self._shared, size, self._max_processes)
        if found is None:
            return None
        if found.process is None:
            try:
                found.process = self._start(partial(self.retire, found))
            except OSError as error:
                raise SetupError(f"no quarantine process could be started: {error.strerror}") from error
            self._shared.append(found)
        found.size = size
        found.members += 1
        return found

    def _take_unneeded(self, keep: int = IDLE_PROCESSES) -> list[PooledProcess]:
        """Remove and return the processes that are empty and dead, or in excess while no turn waits."""
        keep = self._max_processes if self._queue else keep
        unneeded: list[PooledProcess] = []
        for shared in [each for each in self._shared if not each.members]:
            if shared.is_retired or not shared.child.is_alive or keep == 0:
                self._shared.remove(shared)
                unneeded.append(shared)
            else:
                keep -= 1
        return unneeded


def _kill_all(all_shared: Sequence[PooledProcess]) -> None:
    for shared in all_shared:
        shared.child.kill()
