"""One child process that works on one thing at a time, seen from the worker that started it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from brainq.calls.frames import FrameLostError, receive_frame, send_frame
from brainq.errors import SetupError
from brainq.tools.process_guard import ProcessGuard

START_S = 60.0  # for what the brain's module does when it is imported, too
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from brainq.wiring.alone_child import main; main(int(sys.argv[1]))"
)


class AloneProcess:
    """`name` ends the owner's name in its claims."""

    def __init__(self, settings: dict[str, Any], guard: ProcessGuard) -> None:
        self._guard = guard
        self._is_ready = False
        self._sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.name = f"{socket.gethostname()}-{self.pid}"
        guard.add(self.pid)
        # Over the socket: what is secret in it shows in no list of processes.
        send_frame(self._sock, {"settings": settings, "owner": self.name})

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Raises SetupError when it cannot start."""
        if self._is_ready:
            return
        try:
            hello = receive_frame(self._sock, time.monotonic() + START_S)
        except (FrameLostError, TimeoutError) as lost:
            raise SetupError("a process to work alone did not start") from lost
        if "error" in hello:
            raise SetupError(f"a process to work alone did not start: {hello['error']}")
        self._is_ready = True

    def ask(self, what: dict[str, Any]) -> None:
        """Raises OSError when it died."""
        send_frame(self._sock, what)

    def answer(self, timeout_s: float | None) -> dict[str, Any] | None:
        """What it says; None when it does not within `timeout_s`. Raises FrameLostError when it died."""
        self._sock.settimeout(timeout_s)
        try:
            return receive_frame(self._sock)
        except TimeoutError:
            return None
        finally:
            self._sock.settimeout(None)

    def end_word(self) -> str:
        """How it died; waits for that when its socket closed a moment earlier."""
        try:
            status = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "hung up"
        return f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"

    def kill(self) -> None:
        """Kill the group and reap the child; again does nothing."""
        if self._sock.fileno() < 0:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self._guard.forget(self.pid)
        self._sock.close()
