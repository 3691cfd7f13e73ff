"""A child process that does many things at once, seen from the process that started it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from brainq.errors import SetupError
from brainq.leases import process_name
from brainq.processes.frames import FrameLostError, receive_frame, send_frame
from brainq.processes.guard import ProcessGuard

START_S = 60.0  # for what the brain's module does when it is imported, too

EXIT_S = 1.0  # its socket may close a moment before it has ended

_HELLO = 0  # the number of what it says first

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from brainq.wiring.quarantine_child import main; main(int(sys.argv[1]))"
)

Frame = dict[str, Any]


class ChildProcess:
    """`name` ends the owner's name in its claims. `on_gone` gets how it died, before its pending requests fail."""

    def __init__(self, settings: Frame, guard: ProcessGuard, on_gone: Callable[[str], object]) -> None:
        self._guard = guard
        self._on_gone = on_gone
        self._numbers = itertools.count(_HELLO + 1)
        self._lock = threading.Lock()  # of what is sent, and of who waits
        self._hello: Future[Frame] = Future()
        self._pending: dict[int, Future[Frame]] = {_HELLO: self._hello}
        self._is_gone = False
        self._sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.name = process_name(self.pid)
        guard.add(self.pid)
        # Over the socket: what is secret in it shows in no list of processes.
        with contextlib.suppress(OSError):
            send_frame(self._sock, {"settings": settings, "owner": self.name})
        self._ends_at = time.monotonic() + START_S
        threading.Thread(target=self._read, name=f"quarantine-{self.pid}", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return not self._has_exited()

    def wait_ready(self) -> None:
        """Raises SetupError when it cannot start."""
        try:
            hello = self._hello.result(max(0.0, self._ends_at - time.monotonic()))
        except (FrameLostError, TimeoutError) as lost:
            raise SetupError("a quarantine process did not start") from lost
        if "error" in hello:
            raise SetupError(f"a quarantine process did not start: {hello['error']}")

    def request(self, what: Frame) -> Future[Frame]:
        """Send a request. Its answer raises FrameLostError when the child has died, after `on_gone` was called."""
        number, answer = next(self._numbers), Future[Frame]()
        with self._lock:
            if self._is_gone:
                answer.set_exception(FrameLostError("it has died"))
                return answer
            self._pending[number] = answer
            with contextlib.suppress(OSError):  # it has died, which the reading thread reports
                send_frame(self._sock, {**what, "id": number})
        return answer

    def kill(self) -> None:
        """Kill the group and reap the child; again does nothing."""
        with self._lock:
            if self._sock.fileno() < 0:
                return
            # Before it is reaped: its number, which is its group's, may be a stranger's afterwards.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            self._guard.forget(self.pid)
            # The reading thread may be in it: a descriptor that is only closed would not wake it.
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._sock.close()

    def _read(self) -> None:
        """Hand each answer to whom it is for, until the child has hung up."""
        try:
            while True:
                frame = receive_frame(self._sock)
                with self._lock:
                    answer = self._pending.pop(int(frame.get("id", _HELLO)), None)
                if answer is not None:
                    answer.set_result(frame)
        except (FrameLostError, OSError, ValueError) as lost:
            self._on_gone(self._end_word())
            with self._lock:
                self._is_gone = True
                pending, self._pending = list(self._pending.values()), {}
            for answer in pending:
                answer.set_exception(FrameLostError(str(lost)))

    def _end_word(self) -> str:
        """How it died. Waits for that, and leaves the child unreaped: its number stays its own until `kill`."""
        ends_at = time.monotonic() + EXIT_S
        while not self._has_exited():
            if time.monotonic() >= ends_at:
                return "hung up"
            time.sleep(0.005)
        status = self._exit_status()
        return f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"

    def _has_exited(self) -> bool:
        return self._process.returncode is not None or _exit_status(self._process) is not None

    def _exit_status(self) -> int:
        known = self._process.returncode
        return known if known is not None else _exit_status(self._process) or 0


def _exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """A child's status once it has ended, negative for a signal; None while it lives. Where the system can tell, the
    child is not reaped by that."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll()
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # reaped meanwhile
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
