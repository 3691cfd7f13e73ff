"""What runs short for seconds and comes back: no process may end as if all were well, and all must work again."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from brainq.app.devserver.local_fleet import OwnedProcess
from lab.faults.effects import NotSeen, wait_for
from lab.faults.fault import Fault, Pace, wait_turns_end
from lab.faults.stage import Stage

FIT_AGAIN_S = 60.0
"""Until all are ready again on a busy machine; what is asked for is that they are."""
LOOK_EVERY_S = 0.05


class Shortage(Fault):
    """`shorten` is called again and again while it lasts. A process that ends meanwhile is started again, as a
    supervisor does, if it ended by a failure."""

    completes = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.ended: list[str] = []

    def inject(self, stage: Stage) -> None:
        end = time.monotonic() + self.pace.short_s
        while time.monotonic() < end:
            self.shorten(stage)
            self._supervise(stage)
            time.sleep(LOOK_EVERY_S)

    def shorten(self, stage: Stage) -> None:
        """Take what is left. It is called repeatedly while the shortage lasts."""

    @abstractmethod
    def give_back(self, stage: Stage) -> None:
        """End the shortage."""

    def watched(self, stage: Stage) -> Sequence[OwnedProcess]:
        """Return the processes that must outlive the shortage, or be started again by their supervisor."""
        return stage.fleet.workers

    def heal(self, stage: Stage) -> None:
        """Give it back, and wait until every process is ready by itself. Raises NotSeen, and AssertionError where one
        ended as if all were well."""
        self.give_back(stage)
        try:
            wait_for(lambda: self._all_ready(stage), "all processes are ready again", FIT_AGAIN_S)
        except NotSeen as unfit:
            tails = [f"{each.name}: {each.log_tail()}" for each in self.watched(stage) if not each.is_ready]
            raise NotSeen("\n".join([str(unfit), *self.ended, *tails])) from None
        wait_turns_end(stage)

    def _all_ready(self, stage: Stage) -> bool:
        self._supervise(stage)
        return all(process.is_ready for process in self.watched(stage))

    def _supervise(self, stage: Stage) -> None:
        for process in self.watched(stage):
            if process.process is not None and not process.is_running:
                assert process.exit_code != 0, f"{process.name} ended as if it had been asked to: {process.log_tail()}"
                self.ended.append(f"{process.name}: {process.exit_code}")
                self.restart(process)

    def restart(self, process: OwnedProcess) -> None:
        """Start the process again, as a supervisor does. It tries again if the shortage prevents the start."""
        try:
            process.launch()
        except OSError:
            return
