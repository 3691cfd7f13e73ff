"""What `brainq dev` and `brainq up` share: workers that are kept running until they are told to stop."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from brainq.cli.flower import PORT, flower_command
from brainq.cli.logs import LogFollower
from brainq.devserver.fleet import Fleet, Worker
from brainq.devserver.owner import OWNER_FD
from brainq.devserver.stopping import StopSignals
from brainq.devserver.supervisor import Child, Supervisor
from brainq.errors import SetupError

LOOK_EVERY_S = 0.1
START_S = 60.0


@dataclass
class WorkerChild:
    """A worker of a fleet. What it says while it starts is shown only if it does not get ready."""

    fleet: Fleet
    worker: Worker
    follower: LogFollower

    @property
    def name(self) -> str:
        return self.worker.name

    @property
    def is_running(self) -> bool:
        return self.worker.is_running

    @property
    def is_ready(self) -> bool:
        return self.worker.is_ready

    @property
    def exit_code(self) -> int | None:
        return self.worker.process.returncode if self.worker.process else None

    def launch(self) -> None:
        self.follower.hush(self.worker)
        self.fleet.launch(self.worker)


class FlowerChild:
    """Flower, on loopback. It ends with this process, also when that is killed."""

    name = "flower"

    def __init__(self, log_path: Path, environment: dict[str, str]) -> None:
        self._log_path = log_path
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_ready(self) -> bool:
        return self.is_running

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process else None

    def launch(self) -> None:
        self._close_pipe()
        theirs, self._pipe = os.pipe()
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                flower_command(PORT),
                env={**os.environ, **self._environment, OWNER_FD: str(theirs)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        os.close(theirs)

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            self._process.kill()  # it only looks, and keeps nothing
            self._process.wait()
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def start_all(fleet: Fleet, stop: StopSignals) -> bool:
    """Launch every worker and wait until all are ready; False if a stop was asked for before that.

    Raises SetupError with the end of its log when one does not start.
    """
    for worker in fleet.workers:
        fleet.launch(worker)
    end = time.monotonic() + START_S
    while not stop.asked:
        waiting = [worker for worker in fleet.workers if not worker.is_ready]
        if not waiting:
            return True
        failed = [worker for worker in waiting if not worker.is_running or time.monotonic() > end]
        if failed:
            said = fleet.log_tail(failed[0])
            raise SetupError(f"the {failed[0].name} worker did not start; {failed[0].log_path} ends:\n{said}")
        time.sleep(LOOK_EVERY_S)
    return False


def keep_running(
    fleet: Fleet,
    others: Sequence[Child],
    follower: LogFollower,
    console: Console,
    stop: StopSignals,
    each_look: Callable[[], None] = lambda: None,
) -> None:
    """Show what the workers log, and start again what dies, until a stop is asked for."""
    children = [WorkerChild(fleet, worker, follower) for worker in fleet.workers]
    supervisor = Supervisor([*children, *others], lambda said: console.print(said, style="yellow"))
    while not stop.asked:
        time.sleep(LOOK_EVERY_S)
        follower.show()
        supervisor.look()
        each_look()


def stop_all(fleet: Fleet, console: Console, stop: StopSignals, grace_s: float) -> None:
    """Stop the workers: warmly, and at once when a second signal comes."""
    if stop.asked:
        said = f"stopping: running work has {grace_s:g} s to end; Ctrl+C again stops it now"
        console.print(f"\n{said}", style="dim")
    fleet.stop(grace_s, lambda: stop.insisted)
