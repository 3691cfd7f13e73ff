"""A lock file that says who holds it. The lock goes with the process, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """The open lock file; closing it gives the lock up. None while another process has it."""
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
    """Note this process, and what others should know of it."""
    os.pwrite(lock, json.dumps({"pid": str(os.getpid()), **facts}).encode(), 0)


def holder(path: Path) -> dict[str, str]:
    """What the holder noted; empty while it has not yet."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
