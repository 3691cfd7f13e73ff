"""One process at a time runs a pool on a data directory."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brainq.devserver.lock import holder, is_locked, take_lock, write_holder
from brainq.errors import AlreadyRuns


def who_starts(data_dir: Path) -> str:
    """The command, and its process, that runs or starts the pools of a data directory; "" where none does."""
    for path in sorted((data_dir / "run").glob("*.lock")):
        if is_locked(path):
            found = holder(path)
            return f"`{found.get('command', 'brainq')}` (process {found.get('pid', '?')})"
    return ""


@contextmanager
def only_one(data_dir: Path, pools: Sequence[str], command: str) -> Generator[None]:
    """Run these pools of `data_dir` while inside. Raises AlreadyRuns, which names the process that does."""
    directory = data_dir / "run"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as held:
        for pool in pools:
            path = directory / f"{pool}.lock"
            lock = take_lock(path)
            if lock is None:
                found = holder(path)
                raise AlreadyRuns(
                    f"`{found.get('command', 'brainq')}` (process {found.get('pid', '?')}) already runs the {pool} "
                    f"pool on {data_dir.absolute()}; use that one, stop it with Ctrl+C, or set BRAINQ_DATA_DIR to "
                    "another directory"
                )
            held.callback(os.close, lock)
            write_holder(lock, command=command)
        yield
