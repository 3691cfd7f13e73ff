"""Updates of the limits of models that several cells share.

One process of a cell requests the cell's share from the home cell, and returns what the cell does not use. It does so
soon if requests wait, otherwise every few seconds, and not at all for a model that is not used.
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
    """The shares in the SQL of the home cell. Implemented by `adapters.sql.repositories.limit_shares.LimitShares`."""

    def ask(self, cell: str, report: ShareReport) -> Share | None:
        """Return the cell's share. Returns None if a later report of the same cell was answered already."""
        ...


@dataclass
class _ShareState:
    """The last answer about a model's share that this process got. Times are monotonic."""

    at: float
    share: Share | None = None
    away_since: float | None = None


@dataclass(eq=False)
class LimitShareUpdater:
    """The updates of one cell's shares. Any number of processes may run them, because each report is answered once.

    cells: the number of cells.
    home: returns the shares of the home cell. It is called when they are first needed.
    """

    cell: str
    cells: int
    limits: RedisRates
    home: Callable[[], HomeShares]
    now: Callable[[], float] = time.monotonic
    _states: dict[str, _ShareState] = field(default_factory=dict[str, _ShareState])
    _outage: OutageLog = field(default_factory=lambda: OutageLog(log, "request shares of limits from the home cell"))

    def update(self) -> None:
        """Request a share for each model that is due.

        Raises what Redis raises. If the home cell is away, that is logged once.
        """
        for report in self.limits.share_reports():
            state = self._states.get(report.model)
            if is_due(report, None if state is None else state.share, self._since(state)):
                self._request(report)

    def _since(self, state: _ShareState | None) -> float:
        return float("inf") if state is None else self.now() - state.at

    def _request(self, report: ShareReport) -> None:
        state = self._states.setdefault(report.model, _ShareState(self.now()))
        state.at = self.now()
        try:
            answer = self.home().ask(self.cell, report)
        except Exception as failure:
            self._outage.failed(failure)
            state.away_since = state.at if state.away_since is None else state.away_since
            away_s = self.now() - state.away_since
            share = share_without_home(report, self.cells, away_s)
            if share is not None:
                self.limits.put_share(report, share)
            return
        self._outage.worked()
        state.away_since = None
        if answer is not None and self.limits.put_share(report, answer.share):
            state.share = answer


def is_due(report: ShareReport, share: Share | None, ago_s: float) -> bool:
    """Return whether a share must be requested again, `ago_s` after the last request. Pure.

    share: the last answer, or None if this process has none.
    """
    if report.is_idle:  # the part that is held for it is returned
        return ago_s >= ASK_EVERY_S and (share is None or share.held > 0)
    if report.waits and report.share < WHOLE:
        return True
    return ago_s >= ASK_EVERY_S
