"""Whether Redis answers and is set up to keep turns."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from brainq.preflight.check import Check, fail, ok, warn
from brainq.preflight.redis import check_redis as check_answer
from brainq.state.connection import make_client

SKEW_WARN_S = 1.0


def check_redis(url: str) -> Generator[Check, None, bool]:
    """Yields checks; returns whether Redis answered."""
    answer = check_answer(url)
    yield answer
    if answer.level != "ok":
        return False
    client = make_client(url)
    try:
        before = time.time()
        seconds, micros = client.time()
        skew_s = seconds + micros / 1e6 - (before + time.time()) / 2
        info = client.info()
        yield _eviction(info)
        yield _appendonly(info)
        yield _clock(skew_s)
    finally:
        client.close()
    return True


def _eviction(info: dict[str, Any]) -> Check:
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy == "noeviction":
        return ok("redis memory", f"{info.get('used_memory_human', '?')} used, maxmemory-policy noeviction")
    said = f"maxmemory-policy is {policy}: under pressure Redis would drop keys of live turns"
    return fail("redis memory", said, "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf")


def _appendonly(info: dict[str, Any]) -> Check:
    if str(info.get("aof_enabled")) == "1":
        return ok("redis disk", "appendonly yes")
    return warn(
        "redis disk",
        "appendonly is off: a restart of Redis loses the turns that are live",
        "CONFIG SET appendonly yes, and the same in redis.conf",
    )


def _clock(skew_s: float) -> Check:
    if abs(skew_s) < SKEW_WARN_S:
        return ok("clock", f"{skew_s * 1000:+.0f} ms from this machine to Redis")
    return warn(
        "clock",
        f"Redis is {skew_s:+.1f} s from this machine; turns go by Redis alone, but logs will not line up",
        "run NTP on both",
    )
