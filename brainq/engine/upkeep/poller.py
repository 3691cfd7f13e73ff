"""What a coordinator's worker does every few seconds beside its sweeps, each in a thread of its own: home may take long
to answer, or to be found away, and no sweep waits for that.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.threads import KeptThread

log = logger("brainq.upkeep")


class Keeper(Protocol):
    """Fitted by `LeaseKeeper` and `ShareKeeper`."""

    def look(self) -> None:
        """Do what is due. May raise anything: the next look tries again."""
        ...


@dataclass(eq=False)
class Poller:
    """Has a keeper look again and again.

    name   of the thread
    what   a look does, for the log
    """

    keeper: Keeper
    name: str
    what: str
    every_s: float
    _thread: KeptThread | None = field(default=None, init=False)

    def start(self, stop: threading.Event) -> None:
        """Run in a kept thread, unless it does. Raises RuntimeError if the system refuses the thread."""
        if self._thread is None or self._thread.stopping is not stop:
            self._thread = KeptThread(self.name, self.run, stop)
        self._thread.ensure()

    def run(self, stop: threading.Event) -> None:
        """Poll until stopped. What fails is logged once, and tried again."""
        outage = OutageLog(log, self.what)
        while not stop.wait(self.every_s):
            try:
                self.keeper.look()
            except Exception as failure:
                outage.failed(failure)
            else:
                outage.worked()
