"""Lock files with the name of their holder: one server per directory, and one process per pool."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brainq.errors import AlreadyRuns


def take_lock(path: Path) -> int | None:
    """Return the open lock file, or None if another process has the lock.

    Closing the file releases the lock, and so does the end of the process, however it ends.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    return lock


def is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def write_holder(lock: int, **facts: str) -> None:
    """Write this process and the given facts into the lock file."""
    os.pwrite(lock, json.dumps({"pid": str(os.getpid()), **facts}).encode(), 0)


def read_holder(path: Path) -> dict[str, str]:
    """Return the holder's facts; empty until it has written them."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def pool_owner(data_dir: Path) -> str:
    """Return the command and process that runs or starts the pools of a data directory, or ""."""
    for path in sorted((data_dir / "run").glob("*.lock")):
        if is_locked(path):
            holder = read_holder(path)
            return f"`{holder.get('command', 'brainq')}` (process {holder.get('pid', '?')})"
    return ""


@contextmanager
def exclusive_pools(data_dir: Path, pools: Sequence[str], command: str) -> Generator[None]:
    """Hold the locks of these pools of `data_dir` within the context. Raises AlreadyRuns with the holder's name."""
    directory = data_dir / "run"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as held:
        for pool in pools:
            path = directory / f"{pool}.lock"
            lock = take_lock(path)
            if lock is None:
                holder = read_holder(path)
                raise AlreadyRuns(
                    f"`{holder.get('command', 'brainq')}` (process {holder.get('pid', '?')}) already runs the {pool} "
                    f"pool on {data_dir.absolute()}; use that one, stop it with Ctrl+C, or set BRAINQ_DATA_DIR to "
                    "another directory"
                )
            held.callback(os.close, lock)
            write_holder(lock, command=command)
        yield
