"""Check that the Redis user may run the workers' commands on their keys and channels, without running them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from brainq.adapters import redis as state
from brainq.adapters.celery import names
from brainq.adapters.redis.connection import make_client, redis_refusal
from brainq.adapters.redis.keys import Keys
from brainq.app.wiring.preflight import Check, fail, ok
from brainq.runtime.settings.deployment import Settings

_CALLED = re.compile(r"redis\.p?call\(\s*['\"](\w+)['\"]")
_ASK = """
local denied = {}
for number, command in ipairs(cjson.decode(ARGV[1])) do
  local known, allowed = pcall(redis.acl_check_cmd, unpack(command))
  if known and not allowed then denied[#denied + 1] = number - 1 end
end
return denied
"""
MOST_SHOWN = 6
REMEDY = (
    "give the user the rules in ops/redis/users.acl, adapted to this prefix and database; see `Redis` in "
    "docs/operate/deploy.md"
)


def check_rights(settings: Settings, url: str) -> Check:
    """Check each command with `redis.acl_check_cmd`, which needs only the right to EVAL."""
    with make_client(url) as client:
        database = int(client.connection_pool.connection_kwargs.get("db") or 0)
        wanted = worker_commands(settings, database)
        try:
            denied = cast("list[int]", client.execute_command("EVAL", _ASK, 0, json.dumps(wanted)))
        except Exception as error:
            if redis_refusal(error) is None:
                raise
            return fail("redis rights", f"the user may not run scripts ({error})", REMEDY)
    if not denied:
        return ok("redis rights", f"the user may use the commands, keys and channels of {settings.key_prefix!r}")
    shown = ", ".join(" ".join(wanted[at][:2]) for at in denied[:MOST_SHOWN])
    more = f", and {len(denied) - MOST_SHOWN} more" if len(denied) > MOST_SHOWN else ""
    return fail("redis rights", f"the user may not run {shown}{more}", REMEDY)


def worker_commands(settings: Settings, database: int) -> list[tuple[str, ...]]:
    """Return the workers' commands, each with a key or a channel. kombu subscribes to patterns, and an ACL allows a
    pattern only if it lists that same pattern.
    """
    keys, queue = Keys(settings.key_prefix), settings.key_prefix + names.TURNS_QUEUE
    plain = [("PING",), ("TIME",), ("INFO",), ("MULTI",), ("EXEC",), ("SELECT", str(database)), ("SCRIPT", "LOAD", "")]
    plain += [("CLIENT", "SETNAME", "x"), ("CLIENT", "ID"), ("SUBSCRIBE", keys.stops), ("PUBLISH", keys.stops, "")]
    plain += [("SUBSCRIBE", f"{keys.alive}x"), ("EVALSHA", "x", "1", keys.epoch), ("LLEN", queue)]
    called = [(command, *[keys.epoch] * 4) for command in script_commands()]
    if settings.broker_url is not None:
        return [*plain, *called]
    binding = f"{settings.key_prefix}_kombu.binding.celery.pidbox"
    pidbox, events = (f"{settings.key_prefix}/{database}.{name}" for name in ("celery.pidbox", "celeryev/worker.*"))
    broker = [("BRPOP", queue, "1"), ("LPUSH", queue, "x"), ("SADD", binding, "x"), ("SMEMBERS", binding)]
    broker += [("PSUBSCRIBE", pidbox), ("PUBLISH", pidbox, ""), ("PSUBSCRIBE", events)]
    return [*plain, *called, *broker]


def script_commands() -> Sequence[str]:
    """Return the commands that the Lua scripts call."""
    scripts = Path(state.__file__).parent / "lua"
    texts = [path.read_text("utf-8") for path in scripts.rglob("*.lua")]
    return sorted({name.upper() for text in texts for name in _CALLED.findall(text)})
