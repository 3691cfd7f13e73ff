"""`brainq dev --reload`: restart the workers and the gateway when a Python file that they import changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from brainq.app.devserver.local_fleet import LocalFleet
from brainq.cli.dev.supervisor import Program
from brainq.errors import SetupError
from brainq.runtime.observe.threads import KeptThread

GRACE_S = 3.0


class Reloader:
    """A watcher of the Python files of a directory, in its own thread. `beside` are the other programs that load the
    brain's code.
    """

    def __init__(self, fleet: LocalFleet, beside: Sequence[Program], console: Console) -> None:
        self._fleet = fleet
        self._beside = beside
        self._console = console
        self._changed: set[str] = set()
        self._files: set[str] = set()  # the files that the running code imports
        self._is_starting = False
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, directory: Path) -> Generator[None]:
        """Watch the directory within the context. Raises SetupError if watchfiles is not installed."""
        from watchfiles import PythonFilter, watch

        def follow(ended: threading.Event) -> None:
            for changes in watch(directory, watch_filter=PythonFilter(), stop_event=ended, rust_timeout=200):
                with self._lock:
                    self._changed |= {path for _, path in changes}

        self._files = _load_brain_files() or set()
        thread = KeptThread("brainq-reload", follow)
        thread.ensure()
        try:
            yield
        finally:
            thread.stop(2.0)

    @property
    def pending(self) -> frozenset[str]:
        """Return the files that have changed since the last call of `restart_if_changed`."""
        with self._lock:
            return frozenset(self._changed)

    def restart_if_changed(self) -> None:
        """Restart the workers and the gateway if a file that they import has changed and the brain still loads.

        If the brain does not load, its error is printed and the old code keeps running. Changes of other files restart
        nothing. A line is printed once the new code is ready, because until then turns may still be answered by the old
        code.
        """
        with self._lock:
            changed, self._changed = self._changed, set[str]()
        if self._is_starting and all(one.is_ready for one in (*self._fleet.workers, *self._beside)):
            self._is_starting = False
            self._console.print("workers are running the new code", style="dim")
        if not changed:
            return
        before = self._files
        files = _load_brain_files()
        if files is not None:
            self._files = files
        used = {os.path.realpath(path) for path in changed} & (before | (files or changed))
        if before and not used:
            return  # The file is a test, a script or a migration: no running process imports it.
        names = ", ".join(sorted(Path(path).name for path in used or changed))
        if files is None:
            self._console.print(
                f"{names} changed, but the brain does not load; the workers keep the old code", style="yellow"
            )
            return
        self._console.print(f"{names} changed; restarting the workers", style="dim")
        self._fleet.stop(GRACE_S)
        for worker in self._fleet.workers:
            worker.launch()
        for program in self._beside:
            program.stop()
            program.launch()
        self._is_starting = True


def _load_brain_files() -> set[str] | None:
    """Return the files that the brains import now. Returns None if the brains do not load; their error is then printed.

    A new process loads them, because this one keeps the old code.
    """
    loaded = subprocess.run(
        [sys.executable, "-m", "brainq.cli.dev.startup"], check=False, stdout=subprocess.PIPE, text=True
    )
    return None if loaded.returncode else {line for line in loaded.stdout.splitlines() if line.endswith(".py")}


def require_watchfiles() -> None:
    if find_spec("watchfiles") is None:
        raise SetupError("--reload needs the package watchfiles: pip install 'brainq[dev-server]'")
