"""Supervise the processes of `brainq dev` and `up`: start them, restart them, follow their logs, and stop them on
signals.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from brainq.app.devserver.local_fleet import LocalFleet, LocalWorker, OwnedProcess, wait_until_ready
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.cli.output import clean
from brainq.errors import SetupError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Some wrappers forward a Ctrl+C that the terminal has already sent to the whole process group.
DUPLICATE_SIGNAL_S = 0.3
MAX_RESTART_WAIT_S = 30.0
STABLE_S = 60.0  # a process that ran this long starts with a fresh count of deaths
NAME_STYLES = {"coordinator": "cyan", "parallel": "green", "serial": "yellow", "finalizer": "magenta"}
POLL_S = 0.1


class StopSignals:
    """A counter of stop signals while it is entered. Loops check it.

    The handlers only set numbers. An exception raised in a handler could occur inside a lock of the standard library
    (`Popen.poll` has one), which would then stay locked for ever.
    """

    def __init__(self) -> None:
        self._last = float("-inf")
        self._count = 0
        self._before: dict[int, Any] = {}

    @property
    def stop_requested(self) -> bool:
        """True after the first stop signal: running work may end."""
        return self._count > 0

    @property
    def kill_requested(self) -> bool:
        """True after the second stop signal: processes are killed at once."""
        return self._count > 1

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > DUPLICATE_SIGNAL_S:
            self._count += 1
        self._last = now


@dataclass
class _ChildHistory:
    began: float
    deaths: int = 0
    again_at: float | None = None
    is_back: bool = True


class Supervisor:
    """A supervisor that restarts processes that die, after a wait that grows if they keep dying.

    children   the processes, already launched
    report     called with a line for each death and each recovery
    """

    def __init__(
        self,
        children: Sequence[OwnedProcess | EmbeddedServer],
        report: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._children = children
        self._report = report
        self._now = now
        self._lives = {child.name: _ChildHistory(now()) for child in children}

    def check_all(self) -> None:
        """Check each child once, and restart it if that is due."""
        for child in self._children:
            self._check_child(child, self._lives[child.name])

    def _check_child(self, child: OwnedProcess | EmbeddedServer, life: _ChildHistory) -> None:
        now = self._now()
        if child.is_running:
            if not life.is_back and child.is_ready:
                life.is_back = True
                self._report(f"process {child.name} is running again")
            return
        if life.again_at is None:
            life.deaths = 1 if now - life.began > STABLE_S else life.deaths + 1
            wait_s = restart_wait_s(life.deaths)
            life.again_at, life.is_back = now + wait_s, False
            when = f"in {wait_s:g} s" if wait_s else "now"
            self._report(f"process {child.name} ended ({describe_exit(child.exit_code)}); restarting it {when}")
        if now >= life.again_at:
            self._launch(child, life, now)

    def _launch(self, child: OwnedProcess | EmbeddedServer, life: _ChildHistory, now: float) -> None:
        """Start the child. A start that the system refuses counts as a death and does not affect other children."""
        try:
            child.launch()
        except (OSError, MemoryError, SetupError) as refused:
            life.deaths += 1
            life.again_at = now + restart_wait_s(life.deaths)
            wait_s = life.again_at - now
            self._report(f"{child.name} could not be started ({refused}); retrying in {wait_s:g} s")
        else:
            life.again_at, life.began = None, now


def restart_wait_s(deaths: int) -> float:
    """Return the seconds to wait after the n-th death in a row: 0, 1, 2, 4, ... 30."""
    return 0.0 if deaths <= 1 else min(MAX_RESTART_WAIT_S, 2.0 ** min(deaths - 2, 10))


def describe_exit(code: int | None) -> str:
    if code is None:
        return "it never started"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class LogFollower:
    """A follower of the workers' logs. It prints new lines with the worker's name."""

    def __init__(self, fleet: LocalFleet, console: Console) -> None:
        self._fleet = fleet
        self._console = console
        self._read: dict[Path, int] = {}
        self._shown: dict[str, subprocess.Popen[bytes] | None] = {}
        self._width = max(len(worker.name) for worker in fleet.workers)

    def skip_to_end(self) -> None:
        """Skip the current content of the logs: banners and lines of earlier runs."""
        for worker in self._fleet.workers:
            self._skip(worker)

    def show(self) -> None:
        """Print the lines written since the last call. The lines of a starting worker are printed only if it fails to
        start.
        """
        for worker in self._fleet.workers:
            if worker.process is not self._shown.get(worker.name) and worker.is_ready:
                self._skip(worker)
            elif worker.process is not self._shown.get(worker.name) and worker.is_running:
                continue
            for line in self._new_lines(worker.log_path):
                named = Text(f"{worker.name:>{self._width}} ", style=NAME_STYLES.get(worker.pool, ""))
                self._console.print(named.append(clean(line), style="default"), soft_wrap=True)

    def _skip(self, worker: LocalWorker) -> None:
        self._shown[worker.name] = worker.process
        if worker.log_path.exists():
            self._read[worker.log_path] = worker.log_path.stat().st_size

    def _new_lines(self, path: Path) -> list[str]:
        if not path.exists():
            return []
        with path.open("rb") as log:
            log.seek(self._read.get(path, 0))
            whole, _, _ = log.read().rpartition(b"\n")  # leave an unfinished line for the next call
        if not whole:
            return []
        self._read[path] = self._read.get(path, 0) + len(whole) + 1
        return [line for line in whole.decode(errors="replace").splitlines() if line.strip()]


class Program(OwnedProcess):
    """A program that runs next to the workers: Flower or the gateway.

    grace_s   how long it may take to end after SIGTERM; with 0 it is killed at once
    passes    file descriptors that it inherits
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        environment: Mapping[str, str],
        *,
        grace_s: float = 0.0,
        passes: Sequence[int] = (),
    ) -> None:
        super().__init__(name, log_path)
        self._command = command
        self._environment = environment
        self._grace_s = grace_s
        self._passes = passes

    @property
    def is_ready(self) -> bool:
        """True if the program is ready: with a grace period it has written its ready file, otherwise it is running."""
        return self.is_running and (not self._grace_s or self.ready_path.exists())

    def launch(self) -> None:
        self._launch(
            lambda owned, log, inherited: subprocess.Popen(
                self._command,
                env={**os.environ, **self._environment, **owned},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(inherited, *self._passes),
                start_new_session=True,
            )
        )

    def stop(self) -> None:
        if self.process is not None and self.is_running:
            if self._grace_s:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(self._grace_s)
                except subprocess.TimeoutExpired:
                    pass
            self.process.kill()
            self.process.wait()
        self.ready_path.unlink(missing_ok=True)
        self.close_pipe()


def start_all(fleet: LocalFleet, others: Sequence[Program], stop: StopSignals) -> bool:
    """Launch every worker and wait until all processes are ready. Returns False if a stop was requested in the
    meantime.

    Raises SetupError, with the end of the process's log, if a process does not start.
    """
    for worker in fleet.workers:
        worker.launch()
    return wait_until_ready([*others, *fleet.workers], stopped=lambda: stop.stop_requested)
