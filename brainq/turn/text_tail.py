"""TextTail: the text of a reply on its way to readers, a few pieces at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brainq.observe.logs import logger
from brainq.turn.patience import Trying, never

log = logger("brainq.turn")

DELTA_EVERY_S = 0.05  # at most about 20 text events a second a turn
QUIET_S = 0.5  # after a piece that could not be written; doubled each time up to the longest
LONGEST_QUIET_S = 5.0

Tell = Callable[[str, str], bool]
"""Writes one piece: (mark, text). False when the turn is no longer ours. The same mark twice is writing once."""


@dataclass(slots=True)
class TextTail:
    """Groups text deltas. What is left when the reply is whole goes out with the step's commit.

    A piece that cannot be written while Redis is away is kept, under its mark, and written before the next one.
    """

    tell: Tell
    mark: Callable[[], str]
    is_away: Callable[[Exception], bool] = never
    started: float = field(default_factory=time.monotonic)
    _parts: list[str] = field(default_factory=list[str])
    _unsure: tuple[str, str] | None = None  # it may have been written, and the answer have been lost
    _quiet_s: float = 0.0

    def add(self, text: str) -> bool:
        """False when the turn is no longer ours."""
        self._parts.append(text)
        now = time.monotonic()
        if now - self.started < max(DELTA_EVERY_S, self._quiet_s):
            return True
        self.started = now
        try:
            ours = self._write_unsure() and self._write(self.mark(), self._taken())
        except Exception as failure:
            if not self.is_away(failure):
                raise
            # The reply is worth more than its readers' patience: they read this later.
            log.info("text not told yet", why=type(failure).__name__)
            self._quiet_s = min(LONGEST_QUIET_S, 2 * self._quiet_s or QUIET_S)
            self.started = time.monotonic()
            return True
        self._quiet_s = 0.0
        return ours

    def rest(self, trying: Trying) -> str:
        """The text that goes out with the commit. First what was written in doubt is made sure of."""
        trying(self._write_unsure)
        return self._taken()

    def _write(self, mark: str, text: str) -> bool:
        self._unsure = (mark, text)
        ours = self.tell(mark, text)
        self._unsure = None
        return ours

    def _write_unsure(self) -> bool:
        return True if self._unsure is None else self._write(*self._unsure)

    def _taken(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text
