"""Shows what workers write into their log files, as they write it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from brainq.cli.style import clean
from brainq.devserver.fleet import Fleet, Worker

NAME_STYLES = {"coordinator": "cyan", "parallel": "green", "serial": "yellow", "finalizer": "magenta"}


class LogFollower:
    """New lines of every worker's log, each with the worker's name before it."""

    def __init__(self, fleet: Fleet, console: Console) -> None:
        self._fleet = fleet
        self._console = console
        self._read: dict[Path, int] = {}
        self._hushed: set[str] = set()
        self._width = max(len(worker.name) for worker in fleet.workers)

    def skip(self) -> None:
        """Pass over what is in the logs now: banners, and what earlier runs wrote."""
        for worker in self._fleet.workers:
            self._skip(worker)

    def hush(self, worker: Worker) -> None:
        """Pass over what a worker that was just started says until it is ready."""
        self._hushed.add(worker.name)

    def show(self) -> None:
        """Print the lines that came since the last look."""
        for worker in self._fleet.workers:
            if worker.name in self._hushed:
                if worker.is_ready:
                    self._hushed.discard(worker.name)
                    self._skip(worker)
                if worker.is_running:
                    continue
                self._hushed.discard(worker.name)
            for line in self._new_lines(worker.log_path):
                shown = Text(f"{worker.name:>{self._width}} ", style=NAME_STYLES.get(worker.pool, ""))
                self._console.print(shown.append(clean(line), style="default"), soft_wrap=True)

    def _skip(self, worker: Worker) -> None:
        if worker.log_path.exists():
            self._read[worker.log_path] = worker.log_path.stat().st_size

    def _new_lines(self, path: Path) -> list[str]:
        if not path.exists():
            return []
        with path.open("rb") as log:
            log.seek(self._read.get(path, 0))
            whole, _, _ = log.read().rpartition(b"\n")  # a line that is still being written waits for its end
        if not whole:
            return []
        self._read[path] = self._read.get(path, 0) + len(whole) + 1
        return [line for line in whole.decode(errors="replace").splitlines() if line.strip()]
