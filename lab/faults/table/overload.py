"""The load alone, a call that kills its worker every time, ten times the load, and workers whose clocks are wrong."""

from __future__ import annotations

import signal
import time

from lab.faults.effects import wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.stage import Stage
from lab.faults.table.deploys import replace_warmly

FLOOD = 10
DAY_S = 86_400.0
HOUR_S = 3_600.0


class Calm(Fault):
    """The load without a fault, with which the other rows are compared."""

    name = "none"
    title = "no fault: the load alone"

    def inject(self, stage: Stage) -> None:
        time.sleep(self.pace.outage_s)

    def fired(self, stage: Stage) -> int:
        """Return how many turns ended meanwhile."""
        return sum(at >= self.began for at in stage.effects.ended().values())


class Poison(Fault):
    name = "poison"
    title = "a read that kills its worker every time"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.exit_codes: list[int | None] = []

    def inject(self, stage: Stage) -> None:
        """Wait until the turn has ended in spite of the fault. Dead workers are replaced at once."""
        turn = stage.producer.alone("deadly")
        wait_for(lambda: self._over(stage, turn), "the deadly turn ends")

    def _over(self, stage: Stage, turn: str) -> bool:
        self.exit_codes += [worker.exit_code for worker in stage.fleet.workers if not worker.is_running]
        stage.replace_dead()
        return stage.effects.seen("ended", turn) is not None

    def heal(self, stage: Stage) -> None:
        stage.replace_dead()

    def fired(self, stage: Stage) -> int:
        return self.exit_codes.count(-signal.SIGKILL)


class Flood(Fault):
    name = "flood"
    title = f"{FLOOD} times the load for seconds"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.times = 0.0

    def inject(self, stage: Stage) -> None:
        stage.producer.flood(FLOOD - 1, self.pace.outage_s)
        took_s = time.monotonic() - self.began
        came = sum(since >= self.began for since in list(stage.producer.submitted.at.values()))
        self.times = came / took_s / stage.producer.rate

    def fired(self, stage: Stage) -> int:
        """Return 1 if at least half of the flood came. A busy machine may not accept all of it."""
        return int(self.times >= FLOOD / 2)


class WrongClocks(Fault):
    name = "wrong-clocks"
    title = "a worker of each pool a day fast, the other a day slow"

    def inject(self, stage: Stage) -> None:
        for number, worker in enumerate(stage.fleet.workers):
            off_s = DAY_S if number % 2 else -DAY_S
            worker.environment = {**worker.environment, "FAULTS_CLOCK_OFF_S": str(off_s)}
            replace_warmly(stage, worker)
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        for worker in stage.fleet.workers:
            worker.environment = {
                name: value for name, value in worker.environment.items() if name != "FAULTS_CLOCK_OFF_S"
            }
            replace_warmly(stage, worker)

    def fired(self, stage: Stage) -> int:
        said = [line for line in stage.effects.lines() if line["place"] == "clock" and line["at"] >= self.began]
        return sum(abs(line["says"] - time.time()) > HOUR_S for line in said)
