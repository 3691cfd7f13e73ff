"""Limits of models over several cells: one process of a cell asks home for the cell's share, and gives back what it
does not use. It asks soon where requests wait, else every few seconds, and not at all for what is idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from brainq.contracts.limit_share import ASK_EVERY_S, WHOLE, Share, ShareReport, share_without_home
from brainq.runtime.observe.logs import OutageLog, logger

if TYPE_CHECKING:
    from brainq.adapters.redis.rates import RedisRates

log = logger("brainq.upkeep")
LOOK_EVERY_S = 1.0


class HomeShares(Protocol):
    """Where all cells ask. Fitted by `adapters.sql.repositories.limit_shares.LimitShares`."""

    def ask(self, cell: str, report: ShareReport) -> Share | None:
        """The cell's share; None: a later look of the same cell was answered already."""
        ...


@dataclass
class _Asked:
    """What this process knows of a model's share. Times are monotonic."""

    at: float
    share: Share | None = None
    away_since: float | None = None


@dataclass(eq=False)
class ShareKeeper:
    """Asks for one cell. Any number of processes may: a look is answered once, and a later one makes it void.

    home    opened when it is first asked
    cells   how many there are
    """

    cell: str
    cells: int
    limits: RedisRates
    home: Callable[[], HomeShares]
    now: Callable[[], float] = time.monotonic
    _asked: dict[str, _Asked] = field(default_factory=dict[str, _Asked])
    _outage: OutageLog = field(default_factory=lambda: OutageLog(log, "ask home for shares of limits"))

    def look(self) -> None:
        """Ask for each model that is due. Raises what Redis raises; home that is away is logged once."""
        for report in self.limits.share_reports():
            asked = self._asked.get(report.model)
            if is_due(report, None if asked is None else asked.share, self._since(asked)):
                self._ask(report)

    def _since(self, asked: _Asked | None) -> float:
        return float("inf") if asked is None else self.now() - asked.at

    def _ask(self, report: ShareReport) -> None:
        asked = self._asked.setdefault(report.model, _Asked(self.now()))
        asked.at = self.now()
        try:
            answer = self.home().ask(self.cell, report)
        except Exception as failure:
            self._outage.failed(failure)
            asked.away_since = asked.at if asked.away_since is None else asked.away_since
            away_s = self.now() - asked.away_since
            share = share_without_home(report, self.cells, away_s)
            if share is not None:
                self.limits.put_share(report, share)
            return
        self._outage.worked()
        asked.away_since = None
        if answer is not None and self.limits.put_share(report, answer.share):
            asked.share = answer


def is_due(report: ShareReport, share: Share | None, ago_s: float) -> bool:
    """Whether home is asked again that long after the last time. Pure.

    share   what it answered then; None: this process has no answer
    """
    if report.is_idle:  # what was held for it is given back
        return ago_s >= ASK_EVERY_S and (share is None or share.held > 0)
    if report.waits and report.share < WHOLE:
        return True
    return ago_s >= ASK_EVERY_S
