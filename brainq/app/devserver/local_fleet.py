"""Worker processes of all pools, as children of this process, for `brainq dev`, demos, benchmarks and tests.

Workers write their logs to files. They end with this process, even if it is killed, and can be killed and restarted one
by one. In production use `brainq up`, systemd or containers instead.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from brainq.errors import SetupError
from brainq.runtime.processes.supervised import OWNER_FD, READY_FILE

START_S = 120.0  # The time until every worker consumes, on a slow and busy machine.
POOLS = ("coordinator", "parallel", "serial", "finalizer")
ALL = "all"
LOG_TAIL_LINES = 30
LOOK_EVERY_S = 0.02
POOLS_VARIABLE = "BRAINQ_POOLS"
SpawnWorker = Callable[[Sequence[str], Mapping[str, str], int, int], subprocess.Popen[bytes]]
"""A function that starts a worker's process in a session of its own. Its arguments are a celery command, its
environment, a file for its output, and a file that the process inherits.
"""


def run_celery(
    celery: Sequence[str], environment: Mapping[str, str], log: int, inherited: int
) -> subprocess.Popen[bytes]:
    """Run `celery ...` through `workers.tasks.celery_command`. The process inherits the open file `inherited`."""
    return subprocess.Popen(
        [sys.executable, "-m", "brainq.workers.tasks.celery_command", *celery],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(inherited,),
        start_new_session=True,
    )


class OwnedProcess(ABC):
    """A child process that ends when this process ends, even if this process is killed.

    The child writes a file when it is ready.
    """

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self.ready_path = log_path.with_suffix(".ready")
        self.process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        return self.is_running and self.ready_path.exists()

    @property
    def exit_code(self) -> int | None:
        return self.process.returncode if self.process else None

    @abstractmethod
    def launch(self) -> None:
        """Start or restart the process, without waiting for it."""

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        lines = self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def close_pipe(self) -> None:
        """Close the pipe to a process that has ended."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _launch(self, spawn: Callable[[dict[str, str], int, int], subprocess.Popen[bytes]]) -> None:
        """Start a process with `spawn`, which gets its environment, a file for its output, and a
        file that it inherits."""
        self.close_pipe()
        self.ready_path.unlink(missing_ok=True)
        theirs, self._pipe = os.pipe()
        try:
            with self.log_path.open("ab") as log:
                owned = {OWNER_FD: str(theirs), READY_FILE: str(self.ready_path)}
                self.process = spawn(owned, log.fileno(), theirs)
        except OSError:
            self.close_pipe()
            raise
        finally:
            os.close(theirs)


class LocalWorker(OwnedProcess):
    """One worker process. `name` is its pool, with a number when the pool has several.

    pool: a pool, several with commas between them, or `all`.
    """

    def __init__(
        self,
        name: str,
        pool: str,
        log_path: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        spawn: SpawnWorker,
    ) -> None:
        super().__init__(name, log_path)
        self.pool = pool
        self.pools = POOLS if pool == ALL else tuple(pool.split(","))
        self.environment = (
            environment if len(self.pools) == 1 else {**environment, POOLS_VARIABLE: ",".join(self.pools)}
        )
        self.arguments = arguments
        self._spawn = spawn

    def launch(self) -> None:
        module = self.pool if len(self.pools) == 1 else ALL
        celery = ["-A", f"brainq.workers.{module}", "worker", "--without-gossip", "--without-mingle"]
        self._launch(
            lambda owned, log, inherited: self._spawn(
                [*celery, *self.arguments], {**self.environment, **owned}, log, inherited
            )
        )


def wait_until_ready(
    processes: Sequence[OwnedProcess], timeout_s: float = START_S, stopped: Callable[[], bool] = lambda: False
) -> bool:
    """Wait until every process has been ready. Returns False if `stopped()` is true before.

    A process that dies after it was ready counts as started, because a turn's work may have killed it while others
    still start. Raises SetupError, with the end of the log, if a process does not start.
    """
    starting, end = list(processes), time.monotonic() + timeout_s
    while not stopped():
        starting = [each for each in starting if not each.is_ready]
        if not starting:
            return True
        for each in starting:
            if not each.is_running or time.monotonic() > end:
                what = f"{each.name} worker" if isinstance(each, LocalWorker) else each.name
                raise SetupError(f"the {what} did not start; {each.log_path} ends:\n{each.log_tail()}")
        time.sleep(LOOK_EVERY_S)
    return False


def _thread_variables(concurrency: Mapping[str, int]) -> dict[str, str]:
    return {f"BRAINQ_CONCURRENCY__{pool.upper()}": str(threads) for pool, threads in concurrency.items()}


class LocalFleet:
    """Worker processes of the four pools, or of several pools in one process.

    environment   added to this process's own: BRAINQ_APP, BRAINQ_REDIS_URL, ...
    pools         the pools; one entry may name several with commas between them, or `all`, for one process
    workers       how many processes an entry of `pools` has; one each unless given
    concurrency   threads a process has; the settings' default unless given
    spawn         how a process is started
    label         begins each name, where fleets run side by side
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        *,
        workers: Mapping[str, int] | None = None,
        concurrency: Mapping[str, int] | None = None,
        log_level: str = "WARNING",
        pools: Sequence[str] = POOLS,
        spawn: SpawnWorker = run_celery,
        label: str = "",
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.workers: list[LocalWorker] = []
        for pool in pools:
            count = (workers or {}).get(pool, 1)
            for number in range(1, count + 1):
                named = pool.replace(",", "-")
                name = label + (named if count == 1 else f"{named}{number}")
                arguments = ("-l", log_level, "-n", f"{name}@%h")
                given = {**os.environ, **environment, **_thread_variables(concurrency or {})}
                self.workers.append(LocalWorker(name, pool, directory / f"{name}.log", arguments, given, spawn))

    def start(self, timeout_s: float = START_S) -> None:
        """Start every worker and wait until all of them consume. Raises SetupError, with the end of a log, if one does
        not."""
        # A signal's handler raises in the main thread. If it raised during a launch, the process that was just started
        # would not be known yet, and would outlive `stop`.
        with ThreadPoolExecutor(1) as launches:
            launches.submit(self._launch_all).result()
        self.wait_ready(timeout_s)

    def _launch_all(self) -> None:
        for worker in self.workers:
            worker.launch()

    def wait_ready(self, timeout_s: float = START_S) -> None:
        wait_until_ready(self.workers, timeout_s)

    def of_pool(self, pool: str) -> list[LocalWorker]:
        """Return the workers that serve this pool, or `all` of the name."""
        return [worker for worker in self.workers if pool in worker.pools or worker.pool == pool]

    def kill(self, worker: LocalWorker, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one worker. After SIGKILL or SIGTERM, wait until it has ended."""
        assert worker.process is not None
        worker.process.send_signal(how)
        if how in (signal.SIGKILL, signal.SIGTERM):
            worker.process.wait()
            worker.close_pipe()

    def stop(self, grace_s: float = 10.0, insisted: Callable[[], bool] = lambda: False) -> None:
        """Stop every worker warmly. Workers that still run after `grace_s`, or once `insisted()` is
        true, are killed."""
        for worker in self.workers:
            if worker.process is not None and worker.is_running:
                worker.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + grace_s
        for worker in self.workers:
            if worker.process is None:
                continue
            while worker.is_running and time.monotonic() < end and not insisted():
                time.sleep(LOOK_EVERY_S)
            if worker.is_running:
                worker.process.kill()
            worker.process.wait()
            worker.close_pipe()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop(grace_s=2.0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
