"""SIGKILL of each pool's worker, in the middle of its work."""

from __future__ import annotations

import signal
from typing import ClassVar

from lab.faults.fault import Fault, Pace
from lab.faults.stage import Stage


class Kill(Fault):
    """A turn is held at `place` by the effect server, and the worker that is there dies.

    place     where its worker is killed
    resumes   where the next worker comes to that goes on with it
    """

    holds = True
    pool: ClassVar[str]
    place: ClassVar[str]
    resumes: ClassVar[str]

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.turn = ""
        self.pid = 0
        self.exit_codes: list[int] = []

    def prepare(self, stage: Stage) -> None:
        self.turn = hold_turn(stage, self.place)
        self.pid = int(stage.effects.wait_seen(self.place, self.turn)["pid"])

    def inject(self, stage: Stage) -> None:
        process = stage.worker(self.pool, self.pid).process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        self.exit_codes.append(process.wait())

    def heal(self, stage: Stage) -> None:
        stage.effects.release()
        stage.replace_dead()

    def fired(self, stage: Stage) -> int:
        return self.exit_codes.count(-signal.SIGKILL)

    def recovery_s(self, stage: Stage) -> list[float]:
        """Return the seconds from the kill until another worker continues the turn."""
        return [stage.effects.wait_seen(self.resumes, self.turn, after=self.began)["at"] - self.began]


def hold_turn(stage: Stage, place: str) -> str:
    """Submit a turn whose first visitor at `place` is held, and return its id."""
    turn = stage.producer.reserve()
    stage.effects.hold(place, turn)
    stage.producer.submit(session=f"held-{turn}", turn=turn)
    return turn


class KillCoordinator(Kill):
    name = "kill-coordinator"
    title = "SIGKILL: coordinator, while the model answers"
    pool, place, resumes = "coordinator", "model", "model"


class KillParallel(Kill):
    name = "kill-parallel"
    title = "SIGKILL: parallel, in a read"
    pool, place, resumes = "parallel", "read 1", "read 1"


class KillSerial(Kill):
    name = "kill-serial"
    title = "SIGKILL: serial, before its intent"
    pool, place, resumes = "serial", "before order", "before order"


class KillWrite(Kill):
    name = "kill-write"
    title = "SIGKILL: serial, in a write that the server has"
    pool, place, resumes = "serial", "order", "model"


class KillFinalizer(Kill):
    name = "kill-finalizer"
    title = "SIGKILL: finalizer, in a step"
    pool, place, resumes = "finalizer", "usage", "usage"
