"""A guard that kills the process groups of tools and of their servers when the worker dies for any reason.

The guard is a small separate process that reads group ids from a pipe until the pipe ends. A death signal
(`PR_SET_PDEATHSIG`) would do less: it is sent when the *thread* that started the child ends, it reaches only the child
and not the child's children, and only Linux has it. A thread in the child that watches the pipe cannot run while a C
call holds the interpreter lock.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

_SCRIPT = """
import os, signal, sys, time
def kill(group, number):
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == '+' else groups.discard)(int(line[1:]))
ends_at = time.monotonic() + float(sys.argv[1])
while groups and time.monotonic() < ends_at:
    time.sleep(0.02)
    groups = {group for group in groups if kill(group, 0)}
for group in groups:
    kill(group, signal.SIGKILL)
"""


class ProcessGuard:
    """The guard of the groups that must not outlive this process. It starts when the first one is added.

    grace_s: how long they may take to end by themselves once this process is dead.
    """

    def __init__(self, grace_s: float = 0.0) -> None:
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()

    def add(self, group: int) -> None:
        """Kill `group` when this process dies."""
        with self._lock:
            self._groups.add(group)
            self._send(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Note that `group` has ended: its number may be reused."""
        with self._lock:
            self._groups.discard(group)
            self._send(f"-{group}\n")

    def close_if_idle(self) -> None:
        """End the guard if it has no group. The next `add` starts another one."""
        with self._lock:
            if not self._groups:
                self._end()

    def close(self) -> None:
        """End the guard, which kills its remaining groups."""
        with self._lock:
            self._groups.clear()
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(OSError):  # The data that an ended guard did not read.
                process.stdin.close()
            process.wait()

    def _send(self, line: str) -> None:
        if self._process is not None and self._process.poll() is None and self._write(self._process, line):
            return
        self._end()
        if not self._groups:
            return
        self._process = _started(self._grace_s)
        self._write(self._process, "".join(f"+{group}\n" for group in self._groups))

    def _write(self, process: subprocess.Popen[str], text: str) -> bool:
        if process.stdin is None:
            return False
        try:
            process.stdin.write(text)
            process.stdin.flush()
        except OSError:
            return False
        return True


def _started(grace_s: float) -> subprocess.Popen[str]:
    # With -I -S, without site packages, it starts in some 10 ms and is small.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SCRIPT, str(grace_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
