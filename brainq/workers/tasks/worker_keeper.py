"""The keeper of one worker: it starts the next one, waits until that one consumes, and stops the old one.

`python -m brainq.workers.tasks.worker_keeper COMMAND ...` runs COMMAND, a worker. A supervisor takes the keeper for
that worker: it has the same process id, passes on signals, writes the ready file and ends with the worker's exit code.
It imports little, some 15 MB. Two workers of one name run at the moment of a takeover.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from brainq.app.devserver.local_fleet import OwnedProcess
from brainq.runtime.observe.logs import outlive_full_log
from brainq.runtime.processes.supervised import follow_owner, is_marked_ready, mark_ready, mark_unready

RENEW_FILE = "BRAINQ_RENEW_FILE"  # the same as in renewal, which imports Celery
POLL_S = 0.1
RETRY_AFTER_S = 30.0
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1)


class KeptWorker(OwnedProcess):
    """One worker of the keeper. It ends with the keeper.

    It has its own session, because a terminal's Ctrl+C would otherwise reach it twice, and the second one means an
    immediate stop.
    """

    def __init__(self, command: Sequence[str], directory: Path, number: int) -> None:
        super().__init__(f"worker {number}", directory / f"{number}.log")
        self._command = list(command)
        self._renew_path = directory / f"{number}.renew"

    @property
    def wants_renewal(self) -> bool:
        return self._renew_path.exists()

    @property
    def why(self) -> str:
        return self._renew_path.read_text(encoding="utf-8")

    def launch(self) -> None:
        def spawn(owned: dict[str, str], _log: int, inherited: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                self._command,
                env={**os.environ, **owned, RENEW_FILE: str(self._renew_path)},
                pass_fds=(inherited,),
                start_new_session=True,
            )

        self._launch(spawn)

    def send(self, number: int) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)


class Keeper:
    """The process that runs one worker after another.

    current: the worker that works.
    successor: the worker that is starting, to take over.
    retired: the worker that had to stop, until its last task is over.
    """

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        self._command = command
        self._directory = directory
        self._started = 0
        self._retry_at = 0.0
        self._signals: list[int] = []
        self._is_stopping = False
        self.current = self._start()
        self.successor: KeptWorker | None = None
        self.retired: KeptWorker | None = None

    def note_signal(self, number: int, _frame: object = None) -> None:
        """Store a signal. This runs in its handler; `step` passes the signal on."""
        self._signals.append(number)

    def step(self, now: float) -> int | None:
        """Do what is due. Returns the exit code once every worker has ended.

        now: monotonic seconds.
        """
        self._pass_on_signals()
        self._look_at_retired()
        if not self._is_stopping:
            self._renew(now)
        self._mirror_readiness()
        if self.current.is_running or self.retired is not None:
            return None
        if self.successor is not None and self.successor.is_running and not self._is_stopping:
            self.current, self.successor = self.successor, None  # the old one died before it had to stop
            return None
        return None if self.successor is not None and self.successor.is_running else self._exit_code()

    def _start(self) -> KeptWorker:
        self._started += 1
        worker = KeptWorker(self._command, self._directory, self._started)
        worker.launch()
        return worker

    def _pass_on_signals(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            self._is_stopping = self._is_stopping or number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
            for worker in (self.current, self.successor, self.retired):
                if worker is not None:
                    worker.send(number)

    def _look_at_retired(self) -> None:
        if self.retired is not None and not self.retired.is_running:
            self.retired.close_pipe()
            self.retired = None

    def _renew(self, now: float) -> None:
        if self.successor is None:
            if self.current.wants_renewal and self.retired is None and now >= self._retry_at:
                _say(f"starting a new worker: the old one requests it ({self.current.why})")
                self._start_successor(now)
        elif self.successor.is_ready:
            _say("the new worker consumes; the old one finishes its tasks")
            self.current.send(signal.SIGTERM)
            self.retired, self.current, self.successor = self.current, self.successor, None
        elif not self.successor.is_running:
            code = self.successor.exit_code
            _say(f"the new worker ended before it consumed (exit code {code}); the old one continues")
            self.successor.close_pipe()
            self.successor, self._retry_at = None, now + RETRY_AFTER_S

    def _start_successor(self, now: float) -> None:
        """Start the successor.

        If the machine has no room for it, such as at a memory limit, the old worker continues.
        """
        try:
            self.successor = self._start()
        except OSError as failure:
            _say(f"no new worker could be started ({failure.strerror}); the old one continues")
            self._retry_at = now + RETRY_AFTER_S

    def _mirror_readiness(self) -> None:
        is_ready = not self._is_stopping and any(
            worker is not None and worker.is_ready for worker in (self.current, self.successor)
        )
        if is_marked_ready() not in (None, is_ready):
            with suppress(OSError):  # such as on a full disk: it is tried again
                (mark_ready if is_ready else mark_unready)()

    def _exit_code(self) -> int:
        """Return the exit code as a shell has it: 128 plus the signal that killed the worker.

        It is never 0 unless somebody requested the end.
        """
        code = self.current.exit_code or 0
        return code if code > 0 else 128 - code if code < 0 else 0 if self._is_stopping else 1


def _say(what: str) -> None:
    print(f"brainq: {what}", file=sys.stderr, flush=True)


def main(command: Sequence[str]) -> int:
    """Run workers of this command until one ends by itself or a signal ends them."""
    outlive_full_log()
    follow_owner()
    with suppress(OSError):
        mark_unready()
    with TemporaryDirectory(prefix="brainq-keeper-") as directory:
        keeper = Keeper(command, Path(directory))
        for number in PASSED_ON:
            signal.signal(number, keeper.note_signal)
        while (code := keeper.step(time.monotonic())) is None:
            time.sleep(POLL_S)
    with suppress(OSError):
        mark_unready()
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
