"""Parks: what becomes of calls and holds that were waited for too long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brainq.observe.logs import logger
from brainq.ports.calls import Calls

log = logger("brainq.upkeep")


@dataclass(eq=False, kw_only=True)
class Parks:
    """Lets parked calls expire. Doing it again, or too early, changes nothing."""

    calls: Calls
    cancel: Callable[[str, str, str], object]

    def expire(self, session_id: str, turn_id: str) -> str:
        """Returns what was done, in a word."""
        word, detail = self.calls.expire(session_id, turn_id)
        if word == "CANCEL":
            self.cancel(session_id, turn_id, detail)
        if word != "NONE":
            log.info("waited for too long", turn_id=turn_id, did=word.lower())
        return word.lower()
