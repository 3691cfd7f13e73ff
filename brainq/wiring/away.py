"""Whether an exception comes from a server that cannot be reached, or cannot work just now."""

from __future__ import annotations

from brainq.state.away import is_redis_away
from brainq.store.away import is_sql_away


def is_away(failure: BaseException) -> bool:
    """True for trouble with Redis, SQL, the network or the disk: waiting may help. A broker that is away is not told
    here: its bells are rung again."""
    return is_redis_away(failure) or is_sql_away(failure) or isinstance(failure, OSError)
