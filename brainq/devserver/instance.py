"""One process at a time runs a pool on a data directory."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brainq.devserver.lock import holder, take_lock, write_holder
from brainq.errors import AlreadyRuns


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
