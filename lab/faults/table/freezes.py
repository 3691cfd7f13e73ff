"""SIGSTOP for longer than a lease, then SIGCONT: a worker that is thought dead, and comes back."""

from __future__ import annotations

import signal
import subprocess
import time

from lab.faults.effects import wait_for
from lab.faults.fault import Pace
from lab.faults.stage import Stage
from lab.faults.table.kills import Kill, KillCoordinator, KillFinalizer, KillParallel, KillWrite


class Freeze(Kill):
    """A worker that is frozen at `place`. It thaws after another has continued, and finds its lease gone."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.states: list[str] = []

    def inject(self, stage: Stage) -> None:
        worker = stage.worker(self.pool, self.pid)
        stage.fleet.kill(worker, signal.SIGSTOP)
        self.states.append(wait_for(lambda: _stopped(self.pid), f"process {self.pid} stops", 10.0))
        thaws = time.monotonic() + self.pace.frozen_s
        stage.effects.wait_seen(self.resumes, self.turn, after=self.began)
        time.sleep(max(0.0, thaws - time.monotonic()))

    def heal(self, stage: Stage) -> None:
        for worker in stage.fleet.workers:
            if worker.is_running:
                stage.fleet.kill(worker, signal.SIGCONT)
        super().heal(stage)

    def fired(self, stage: Stage) -> int:
        return len(self.states)


def _stopped(pid: int) -> str:
    """Return `T` if the process is stopped, by the process list of its own system."""
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "T" if state.stdout.strip().startswith("T") else ""


class FreezeCoordinator(Freeze, KillCoordinator):
    name = "freeze-coordinator"
    title = "SIGSTOP, SIGCONT: coordinator, while the model answers"


class FreezeParallel(Freeze, KillParallel):
    name = "freeze-parallel"
    title = "SIGSTOP, SIGCONT: parallel, in a read"


class FreezeWrite(Freeze, KillWrite):
    name = "freeze-write"
    title = "SIGSTOP, SIGCONT: serial, in a write that the server has"


class FreezeFinalizer(Freeze, KillFinalizer):
    name = "freeze-finalizer"
    title = "SIGSTOP, SIGCONT: finalizer, in a step"
