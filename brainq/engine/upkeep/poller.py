"""The regular work of a coordinator's worker beside its sweeps. Each kind has a thread of its own.

A request to the home cell may take long, and no sweep may wait for it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.threads import KeptThread

log = logger("brainq.upkeep")


class Updater(Protocol):
    """Regular work. Implemented by `BudgetLeaseUpdater` and `LimitShareUpdater`."""

    def update(self) -> None:
        """Do the work that is due. It may raise any exception, and is then called again later."""
        ...


@dataclass(eq=False)
class Poller:
    """A thread that calls an updater again and again.

    name: the name of the thread.
    what: what an update does, for the log.
    """

    updater: Updater
    name: str
    what: str
    every_s: float
    _thread: KeptThread | None = field(default=None, init=False)

    def start(self, stop: threading.Event) -> None:
        """Start the kept thread if it does not run. Raises RuntimeError if the system refuses the thread."""
        if self._thread is None or self._thread.stopping is not stop:
            self._thread = KeptThread(self.name, self.run, stop)
        self._thread.ensure()

    def run(self, stop: threading.Event) -> None:
        """Call the updater until `stop` is set. A failure is logged once, and the update is tried again."""
        outage = OutageLog(log, self.what)
        while not stop.wait(self.every_s):
            try:
                self.updater.update()
            except Exception as failure:
                outage.failed(failure)
            else:
                outage.worked()
