"""Saying that a worker leaves work to others, because it does not have its brain."""

from __future__ import annotations

import time
from collections.abc import Sequence

from brainq.observe.logs import logger

log = logger("brainq.brains")

SAID_EVERY_S = 60.0  # such a worker may be asked all the time while a deployment is rolled out


class MissingBrain:
    """Says it once a minute."""

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def say(self, what: str, turn_id: str, brains: Sequence[str]) -> None:
        """Of `what` (`turn`, `call`, `step`) of this turn; `brains` are those of this worker."""
        now = time.monotonic()
        if now - self._said_at >= SAID_EVERY_S:
            self._said_at = now
            log.warning(
                "left to others: this worker does not have its brain; all workers must load the same BRAINQ_APP",
                what=what,
                turn_id=turn_id,
                brains=", ".join(brains),
            )


def not_served(brain: str | None, brains: Sequence[str]) -> str:
    """Why a turn of `brain` ended without it, for people and producers."""
    return f"no worker with the brain {brain!r} went on with this turn in time; the brains are {', '.join(brains)}"
