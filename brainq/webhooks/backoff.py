"""When a delivery that was not taken is tried again. Pure."""

from __future__ import annotations

FIRST_S = 5.0
FACTOR = 3.0
MOST_S = 6 * 3600.0
MAX_TRIES = 12
"""After these it is dead: 17 to 28 hours after the first try, as the jitter falls."""
JITTER = 0.25


def again_after_s(tries: int, chance: float) -> float:
    """Seconds until the next try, after `tries` of them: 5 s, 15 s, 45 s, ... at most 6 h, each a quarter more or less.

    chance   from 0 to 1, a random number: receivers that come back are not met by all at once
    """
    plain = min(MOST_S, FIRST_S * FACTOR ** (tries - 1))
    return plain * (1 - JITTER + 2 * JITTER * chance)
