"""`brainq dev --reload`: what runs is started again with the new code when a Python file that it imports changes."""

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

from brainq.cli.dev.supervisor import Program
from brainq.devserver.local_fleet import LocalFleet
from brainq.errors import SetupError
from brainq.observe.threads import KeptThread

GRACE_S = 3.0


class Reloader:
    """Watches the Python files of a directory, in a thread of its own. `beside` are programs that run its code, too."""

    def __init__(self, fleet: LocalFleet, beside: Sequence[Program], console: Console) -> None:
        self._fleet = fleet
        self._beside = beside
        self._console = console
        self._changed: set[str] = set()
        self._files: set[str] = set()  # of the code that runs
        self._is_starting = False
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, directory: Path) -> Generator[None]:
        """Watch while inside. Raises SetupError when watchfiles is not installed."""
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
        """Files that changed since the last look."""
        with self._lock:
            return frozenset(self._changed)

    def restart_if_changed(self) -> None:
        """Start workers and gateway again if a file that they import changed and the brain still loads.

        If it does not load, say why, and leave them. Other files start nothing.

        Says when they are ready, too: what is submitted before may still be answered by the code from before.
        """
        with self._lock:
            changed, self._changed = self._changed, set[str]()
        if self._is_starting and all(one.is_ready for one in (*self._fleet.workers, *self._beside)):
            self._is_starting = False
            self._console.print("ready with the new code", style="dim")
        if not changed:
            return
        before = self._files
        files = _load_brain_files()
        if files is not None:
            self._files = files
        used = {os.path.realpath(path) for path in changed} & (before | (files or changed))
        if before and not used:
            return  # a test, a script, a migration: nothing that runs has it
        names = ", ".join(sorted(Path(path).name for path in used or changed))
        if files is None:
            self._console.print(f"{names} changed; the workers go on with the code from before", style="yellow")
            return
        self._console.print(f"{names} changed; starting the workers again", style="dim")
        self._fleet.stop(GRACE_S)
        for worker in self._fleet.workers:
            worker.launch()
        for program in self._beside:
            program.stop()
            program.launch()
        self._is_starting = True


def _load_brain_files() -> set[str] | None:
    """The files of the brains as they are now; None when they cannot be loaded, and why was printed.

    In a process of its own: this one has the old code, and always will.
    """
    loaded = subprocess.run(
        [sys.executable, "-m", "brainq.cli.dev.startup"], check=False, stdout=subprocess.PIPE, text=True
    )
    return None if loaded.returncode else {line for line in loaded.stdout.splitlines() if line.endswith(".py")}


def require_watchfiles() -> None:
    if find_spec("watchfiles") is None:
        raise SetupError("--reload needs the package watchfiles: pip install 'brainq[dev-server]'")
