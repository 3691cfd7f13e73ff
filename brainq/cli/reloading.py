"""`brainq dev --reload`: the workers are started again with the new code when a Python file changes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from brainq.cli.logs import LogFollower
from brainq.cli.running import Program
from brainq.devserver.fleet import Fleet
from brainq.errors import SetupError

GRACE_S = 3.0


class Reloader:
    """Watches the Python files of a directory, in a thread of its own. `beside` are programs that run its code, too."""

    def __init__(
        self, fleet: Fleet, beside: Sequence[Program], follower: LogFollower, console: Console
    ) -> None:
        self._fleet = fleet
        self._beside = beside
        self._follower = follower
        self._console = console
        self._changed: set[str] = set()
        self._is_starting = False
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, directory: Path) -> Generator[None]:
        """Watch while inside. Raises SetupError when watchfiles is not installed."""
        from watchfiles import PythonFilter, watch

        ended = threading.Event()

        def follow() -> None:
            for changes in watch(directory, watch_filter=PythonFilter(), stop_event=ended, rust_timeout=200):
                with self._lock:
                    self._changed |= {path for _, path in changes}

        thread = threading.Thread(target=follow, name="reload", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(2.0)

    def look(self) -> None:
        """Start the workers again if a file changed and the brain still loads; if not, say why, and leave them.

        Says when they are ready, too: what is submitted before may still be answered by the code from before.
        """
        with self._lock:
            changed, self._changed = self._changed, set[str]()
        if self._is_starting and all(one.is_ready for one in (*self._fleet.workers, *self._beside)):
            self._is_starting = False
            self._console.print("ready with the new code", style="dim")
        if not changed:
            return
        names = ", ".join(sorted(Path(path).name for path in changed))
        # In a process of its own: this one has the old code, and always will.
        loaded = subprocess.run([sys.executable, "-m", "brainq.cli.starting"], check=False)
        if loaded.returncode:
            self._console.print(
                f"{names} changed; the workers go on with the code from before", style="yellow"
            )
            return
        self._console.print(f"{names} changed; starting the workers again", style="dim")
        self._fleet.stop(GRACE_S)
        for worker in self._fleet.workers:
            self._follower.hush(worker)
            self._fleet.launch(worker)
        for program in self._beside:
            program.stop()
            program.launch()
        self._is_starting = True


def require_watchfiles() -> None:
    if find_spec("watchfiles") is None:
        raise SetupError("--reload needs the package watchfiles: pip install 'brainq[dev-server]'")
