"""Kills the process groups of tool processes when the worker dies, however it dies.

The guard is a small process of its own that reads group ids from a pipe and waits for its end. A death signal
(`PR_SET_PDEATHSIG`) would do less: it is sent when the *thread* that started the child ends, it reaches only
the child and not what the child started, and only Linux has it. A thread in the child that watches the pipe
cannot run while a C call holds the interpreter lock.
"""

from __future__ import annotations

import subprocess
import sys
import threading

_SCRIPT = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == '+' else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class ProcessGuard:
    """Knows the groups that must not outlive this process. Started when the first is added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()

    def add(self, group: int) -> None:
        """From now on, `group` dies with this process."""
        with self._lock:
            self._groups.add(group)
            self._say(f"+{group}\n")

    def forget(self, group: int) -> None:
        """`group` has ended; its number may be given to others."""
        with self._lock:
            self._groups.discard(group)
            self._say(f"-{group}\n")

    def close(self) -> None:
        """End the guard; it kills what it still knows."""
        with self._lock:
            process, self._process = self._process, None
            self._groups.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.poll() is None and self._write(self._process, line):
            return
        if not self._groups:
            return
        self._process = _started()
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


def _started() -> subprocess.Popen[str]:
    # -I -S: no site packages, so it is up in some 10 ms and small.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
