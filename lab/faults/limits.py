"""Limits of a running process, which may open no further file or start no further thread until they are lifted."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

PIDS = Path("/sys/fs/cgroup/pids")
UNIFIED = Path("/sys/fs/cgroup")


class Descriptors:
    """A limit of open files. The process's soft limit is lowered to the first free number (prlimit)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def shorten(self) -> None:
        """Lower the limit once more, so that the process cannot reopen what it has closed."""
        with suppress(OSError):  # it has ended
            used = {int(number) for number in os.listdir(f"/proc/{self.pid}/fd")}
            free = next(number for number in range(len(used) + 1) if number not in used)
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (free, self._limits[1]))

    def give_back(self) -> None:
        with suppress(OSError):
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self._limits)


class Threads:
    """It is put into a control group of its own whose `pids.max` is what it has: the kernel refuses further threads and
    processes, root's too, and counts them."""

    def __init__(self, pid: int) -> None:
        self._group = _parent() / f"bq-faults-{pid}"
        self._group.mkdir()
        (self._group / "cgroup.procs").write_text(str(pid))

    def shorten(self) -> None:
        """Lower the limit once more, so that no other thread takes the place of one that has ended."""
        with suppress(OSError):
            (self._group / "pids.max").write_text((self._group / "pids.current").read_text().strip())

    @property
    def refused(self) -> int:
        """Return how often a thread or process was refused."""
        return int((self._group / "pids.events").read_text().split()[1])

    def give_back(self) -> None:
        """Move the processes back to their own control group."""
        (self._group / "pids.max").write_text("max")
        for pid in (self._group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (_parent() / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            self._group.rmdir()


def no_descriptors() -> str:
    """Return why files cannot be limited here, or "" if they can."""
    return "" if sys.platform == "linux" else "prlimit and /proc are Linux'"


def no_threads() -> str:
    """Return why threads cannot be limited here, or "" if they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "threads are limited by a control group, which only root may make, on Linux"
    tried = _parent() / f"bq-faults-{os.getpid()}-tried"
    try:
        tried.mkdir()
        is_there = (tried / "pids.max").exists()
        tried.rmdir()
    except OSError:
        is_there = False
    return "" if is_there else "this container may not make a control group with pids.max"


def _parent() -> Path:
    return PIDS if PIDS.is_dir() else UNIFIED
