"""What `brainq dev` and `brainq up` share: workers that are kept running until they are told to stop."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from brainq.cli.flower import PORT, flower_command
from brainq.cli.logs import LogFollower
from brainq.cli.serve import gateway_command
from brainq.devserver.fleet import LOG_TAIL_LINES, START_S, Fleet, Worker
from brainq.devserver.owner import LISTENER_FD, OWNER_FD, READY_FILE
from brainq.devserver.stopping import StopSignals
from brainq.devserver.supervisor import Child, Supervisor
from brainq.errors import SetupError

LOOK_EVERY_S = 0.1


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


class Program:
    """What runs beside the workers: Flower, the gateway. It ends with this process, also when that is killed.

    grace_s   how long it may take to end when it is told to; 0: it is killed, for it only looks
    passes    open files that it is handed
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
        self.name = name
        self.log_path = log_path
        self._command = command
        self._environment = environment
        self._grace_s = grace_s
        self._passes = passes
        self._ready_path = log_path.with_suffix(".ready")
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Of a program without a grace: it runs. Others say when they are."""
        return self.is_running and (not self._grace_s or self._ready_path.exists())

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process else None

    def launch(self) -> None:
        self._close_pipe()
        self._ready_path.unlink(missing_ok=True)
        theirs, self._pipe = os.pipe()
        owned = {OWNER_FD: str(theirs), READY_FILE: str(self._ready_path)}
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **self._environment, **owned},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs, *self._passes),
                start_new_session=True,
            )
        os.close(theirs)

    def stop(self) -> None:
        if self._process is not None and self.is_running:
            if self._grace_s:
                self._process.terminate()
                try:
                    self._process.wait(self._grace_s)
                except subprocess.TimeoutExpired:
                    pass
            self._process.kill()
            self._process.wait()
        self._ready_path.unlink(missing_ok=True)
        self._close_pipe()

    def log_tail(self) -> str:
        said = self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []
        return "\n".join(said[-LOG_TAIL_LINES:])

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def flower_program(logs: Path, environment: Mapping[str, str]) -> Program:
    return Program("flower", flower_command(PORT), logs / "flower.log", environment)


def gateway_program(
    logs: Path, environment: Mapping[str, str], grace_s: float, listener: socket.socket | None = None
) -> Program:
    """With a `listener`, a bound socket, it listens on that, and again on it when it is started again."""
    listens = () if listener is None else (listener.fileno(),)
    given = {LISTENER_FD: str(listens[0])} if listens else {}
    return Program(
        "gateway",
        gateway_command(),
        logs / "gateway.log",
        {**environment, **given},
        grace_s=grace_s,
        passes=listens,
    )


def start_all(fleet: Fleet, others: Sequence[Program], stop: StopSignals) -> bool:
    """Launch every worker and wait until all are ready, the others too; False if a stop was asked for before that.

    Raises SetupError with the end of its log when one does not start.
    """
    for worker in fleet.workers:
        fleet.launch(worker)
    end = time.monotonic() + START_S
    while not stop.asked:
        waiting = [worker for worker in fleet.workers if not worker.is_ready]
        unready = [other for other in others if not other.is_ready]
        if not waiting and not unready:
            return True
        ended = [other for other in unready if not other.is_running or time.monotonic() > end]
        if ended:
            path, said = ended[0].log_path, ended[0].log_tail()
            raise SetupError(f"the {ended[0].name} did not start; {path} ends:\n{said}")
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
