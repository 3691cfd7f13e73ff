"""A process's needs of its machine: file descriptors, memory, threads, and space on the disks it writes to."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

SPARE_FILES = 16  # descriptors that a task may need at once: files, sockets, the pipes of a child process
SPARE_BYTES = 16 * 2**20  # of address space: the stack of a thread has half of it
PROBE_BYTES = 65_536
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})
_NOT_OURS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EROFS, errno.EACCES, errno.EPERM})


def is_shortage(failure: BaseException) -> bool:
    """Return whether a failure, or one of its causes, means that the process or its machine has run out of a resource.
    Libraries wrap such errors, as in urllib.error.URLError."""
    told: BaseException | None = failure
    while told is not None:
        if _tells_shortage(told):
            return True
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)
    return False


def is_short_now(failure: BaseException) -> bool:
    """Return whether a failure means that the process ran out of a resource, and a test confirms it now. In another
    process the work may succeed."""
    return is_shortage(failure) and bool(find_shortage())


def _tells_shortage(failure: BaseException) -> bool:
    if isinstance(failure, BaseExceptionGroup):
        return any(map(is_shortage, failure.exceptions))
    if isinstance(failure, OSError) and failure.errno is not None:
        return failure.errno in _SHORT
    return isinstance(failure, MemoryError) or (isinstance(failure, RuntimeError) and "new thread" in str(failure))


def writable_directories(candidates: Sequence[Path]) -> tuple[Path, ...]:
    """Return those of these directories that this process writes to. A directory on a full disk counts, because its
    space may be freed."""
    return tuple(each for each in candidates if (why := _refused_write(each)) is None or why.errno not in _NOT_OURS)


def temporary_directories() -> tuple[Path, ...]:
    """Return the places of Python's temporary files, or none."""
    try:
        return (Path(tempfile.gettempdir()),)
    except OSError:
        return ()


def find_shortage(directories: Sequence[Path] = ()) -> str:
    """Return what is missing, with the remedy, or "". Each look uses and releases what a task would use."""
    looks: tuple[tuple[str, Callable[[], object]], ...] = (
        ("no file descriptors are left; raise the limit (`ulimit -n`, LimitNOFILE=)", _open_files),
        ("no memory is left; raise the limit of the process, or free some", _map_memory),
        ("no thread can be started; raise the limit (`ulimit -u`, TasksMax=, pids.max)", _start_thread),
    )
    for what, look in looks:
        try:
            look()
        except (OSError, MemoryError, RuntimeError):
            return what
    for each in directories:
        if (why := _refused_write(each)) is not None:
            return f"{each} cannot be written ({why.strerror}); free space on that disk"
    return ""


def _open_files() -> None:
    files: list[int] = []
    try:
        for _ in range(SPARE_FILES):
            files.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for file in files:
            os.close(file)


def _map_memory() -> None:
    mmap.mmap(-1, SPARE_BYTES).close()


def _start_thread() -> None:
    thread = threading.Thread(target=bool, name="brainq-probe", daemon=True)  # noqa: TID251 - tried once, not thrice
    thread.start()
    thread.join()


def _refused_write(directory: Path) -> OSError | None:
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as probe:
            probe.write(b"\0" * PROBE_BYTES)
    except OSError as refused:
        return refused
    return None
