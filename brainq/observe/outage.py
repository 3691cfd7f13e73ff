"""What fails again and again, as while Redis is away: said once, then for how long, then that it is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from brainq.observe.logs import EventLogger

REMIND_S = 60.0


class Outage:
    """Of one loop. `what` is its short name, such as `sweep`; `remind_s` is how often a lasting failure is told."""

    def __init__(
        self,
        log: EventLogger,
        what: str,
        *,
        remind_s: float = REMIND_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._what = what
        self._remind_s = remind_s
        self._now = now
        self._began: float | None = None
        self._told = 0.0
        self._times = 0

    def failed(self, failure: BaseException) -> None:
        """It failed (again)."""
        now = self._now()
        self._times += 1
        if self._began is None:
            self._began = self._told = now
            self._log.error(f"{self._what} failed, and is tried again", failure=failure)
        elif now - self._told >= self._remind_s:
            self._told = now
            for_s = round(now - self._began)
            self._log.error(f"{self._what} still fails", failure=failure, for_s=for_s, times=self._times)

    def worked(self) -> None:
        """It went well."""
        if self._began is not None:
            after_s = round(self._now() - self._began, 1)
            self._log.warning(f"{self._what} works again", after_s=after_s, times=self._times)
        self._began, self._times = None, 0
