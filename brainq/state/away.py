"""Whether an exception says that Redis is away, or cannot work just now: what was asked may be asked again later."""

from __future__ import annotations

import redis


def is_redis_away(failure: BaseException) -> bool:
    """False for what would fail in just the same way again, such as a value that has no form in Redis."""
    return isinstance(failure, redis.RedisError) and not isinstance(failure, redis.DataError)


DISK_REMEDY = (
    "make room on the disk that holds its files (`CONFIG GET dir`); it then takes writes again by itself"
)


def disk_is_full(failure: BaseException) -> bool:
    """Whether Redis answers and refuses writes because it cannot keep them on its disk, which is full or broken."""
    return str(failure).startswith("MISCONF")
