"""Python processes in their own process groups, with JSON objects over a socket to each.

A frame is four bytes of length, then the text.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, cast

from brainq.runtime.processes.guard import ProcessGuard

MAX_FRAME_BYTES = 64 * 1024 * 1024
EXIT_S = 1.0  # the socket of a process may close a moment before it has ended
_LENGTH_BYTES = 4
_BOOT = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "module, name = sys.argv[3].split(':'); "
    "getattr(importlib.import_module(module), name)(int(sys.argv[1]), *sys.argv[4:])"
)


class SocketChild:
    """A Python process and the socket to it, `sock`. The process group is killed together with it, and when this
    process ends."""

    def __init__(self, guard: ProcessGuard, main: str, *arguments: str) -> None:
        """Start `main`, such as `app.child:main`, with the number of the socket's descriptor, and `arguments`. Raises
        OSError if no process can be started."""
        self._guard = guard
        self._killing = threading.Lock()
        self.sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), json.dumps(sys.path), main, *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.pid = self._process.pid
        guard.add(self.pid)

    @property
    def is_alive(self) -> bool:
        return self._exit_status() is None

    def describe_end(self) -> str:
        """Return how it died, such as `was killed by signal 9`. Waits up to a second for that. The child stays
        unreaped, so that its number is not reused until `kill`."""
        ends_at = time.monotonic() + EXIT_S
        while (status := self._exit_status()) is None:
            if time.monotonic() >= ends_at:
                return "hung up"
            time.sleep(0.005)
        return f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"

    def kill(self) -> None:
        """Kill the group, reap the child and close the socket. Idempotent."""
        with self._killing:
            if self.sock.fileno() < 0:
                return
            # Kill the group before reaping, because the child's number, which is also the group's, may be reused
            # afterwards.
            signal_group(self.pid, signal.SIGKILL)
            self._process.wait()
            self._guard.forget(self.pid)
            # A thread may be reading from it, and closing the descriptor would not wake that thread.
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
            self.sock.close()

    def _exit_status(self) -> int | None:
        """Return the child's status once it has ended, negative for a signal. Returns None while it lives."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll()
        try:
            return unreaped_status(self.pid)
        except ChildProcessError:  # reaped in the meantime
            return self._process.poll()


def unreaped_status(pid: int) -> int | None:
    """Return a child's status once it has ended, negative for a signal. Returns None while it lives. Raises
    ChildProcessError if it was already reaped."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def signal_group(leader: int, number: int) -> None:
    """Signal the group that a process leads, while it or another member lives or is unreaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


class FrameLostError(Exception):
    """The error if the other side hung up, or sent something other than a frame."""


def send_frame(sock: socket.socket, body: dict[str, Any]) -> None:
    """Send a frame. Raises OSError if the other side is gone."""
    data = json.dumps(body).encode()
    sock.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive_frame(sock: socket.socket, ends_at: float | None = None) -> dict[str, Any]:
    """Return the next frame. Raises FrameLostError, and TimeoutError once monotonic time passes `ends_at`."""
    length = int.from_bytes(_receive(sock, _LENGTH_BYTES, ends_at), "big")
    if length > MAX_FRAME_BYTES:
        raise FrameLostError(f"a frame has {length} bytes; the maximum is {MAX_FRAME_BYTES}")
    body: object = json.loads(_receive(sock, length, ends_at))
    if not isinstance(body, dict):
        raise FrameLostError("a frame must be an object")
    return cast("dict[str, Any]", body)


def _receive(sock: socket.socket, length: int, ends_at: float | None) -> bytes:
    parts: list[bytes] = []
    missing = length
    while missing:
        if ends_at is not None:
            # 0 would mean non-blocking, but data that came in time must still be read.
            sock.settimeout(max(0.001, ends_at - time.monotonic()))
        try:
            part = sock.recv(min(missing, 1 << 20))
        except TimeoutError:
            raise
        except OSError as error:
            raise FrameLostError(str(error)) from error
        if not part:
            raise FrameLostError("the other side hung up")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
