"""TextTail: the text of a reply on its way to readers, a few pieces at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brainq.contracts.event import EventKind
from brainq.observe.logs import logger
from brainq.turn.patience import Trying, never

log = logger("brainq.turn")

DELTA_EVERY_S = 0.05  # at most about 20 text events a second a turn
QUIET_S = 0.5  # after a piece that could not be written; doubled each time up to the longest
LONGEST_QUIET_S = 5.0

Tell = Callable[[str, str, EventKind], bool]
"""Writes one piece: (mark, text, kind). False when the turn is no longer ours. The same mark twice is writing once."""


@dataclass(slots=True)
class TextTail:
    """Groups deltas of text, and of what was thought before it. What is left of the text when the reply is whole goes
    out with the step's commit.

    A piece that cannot be written while Redis is away is kept, under its mark, and written before the next one.
    """

    tell: Tell
    mark: Callable[[], str]
    is_away: Callable[[Exception], bool] = never
    started: float = field(default_factory=time.monotonic)
    _kind: EventKind = EventKind.TEXT_DELTA
    _parts: list[str] = field(default_factory=list[str])
    _waiting: list[tuple[str, str, EventKind]] = field(default_factory=list[tuple[str, str, EventKind]])
    _quiet_s: float = 0.0

    def add(self, text: str, kind: EventKind = EventKind.TEXT_DELTA) -> bool:
        """False when the turn is no longer ours."""
        now = time.monotonic()
        if kind is not self._kind:  # the pieces keep their order
            self._pack()
            self._kind = kind
        self._parts.append(text)
        if now - self.started < max(DELTA_EVERY_S, self._quiet_s):
            return True
        self.started = now
        self._pack()
        try:
            ours = self._write()
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
        """The text that goes out with the commit. First what was not written, or in doubt, is made sure of."""
        if self._kind is not EventKind.TEXT_DELTA:
            self._pack()
        trying(self._write)
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def _pack(self) -> None:
        """What is held becomes a piece."""
        if self._parts:
            self._waiting.append((self.mark(), "".join(self._parts), self._kind))
            self._parts.clear()

    def _write(self) -> bool:
        """Write the pieces. One that fails may have been written, and its answer have been lost: it stays the first."""
        while self._waiting:
            if not self.tell(*self._waiting[0]):
                return False
            self._waiting.pop(0)
        return True
