"""Check that the Redis user may run the workers' commands on their keys and channels, without running them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from brainq.adapters import redis as state
from brainq.adapters.celery import names
from brainq.adapters.redis.connection import Client, is_denied, make_client, redis_refusal
from brainq.adapters.redis.keys import Keys
from brainq.app.wiring.preflight import Check, fail, ok, warn
from brainq.runtime.settings.cluster_url import REPLICATED_SCHEMES
from brainq.runtime.settings.deployment import Settings

_CALLED = re.compile(r"redis\.p?call\(\s*['\"](\w+)['\"]")
_RIGHTS = """
local denied, absent = {}, {}
for number, command in ipairs(cjson.decode(ARGV[1])) do
  local known, allowed = pcall(redis.acl_check_cmd, unpack(command))
  if known and not allowed then denied[#denied + 1] = number - 1 end
end
for _, command in ipairs({{'INFO', 'server'}, {'PUBSUB', 'NUMSUB', ''}}) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then absent[#absent + 1] = command[1] end
end
return {denied, absent}
"""
MOST_SHOWN = 6
REMEDY = (
    "give the user the rules in ops/redis/users.acl, adapted to this prefix and database; see `Redis` in "
    "docs/operate/deploy.md"
)
LOST = {
    "INFO": "failovers are noticed later, and a call whose worker died before it started is unknown",
    "PUBSUB": "the work of a dead process waits until its lease ends",
    "WAIT": "a call with effects does not wait for replicas, so a failover may lose its start",
    "PSUBSCRIBE": "Flower shows no tasks",
}
"""What is lost without each command that workers can do without."""


def check_rights(settings: Settings, url: str) -> Check:
    """Check each command with `redis.acl_check_cmd`, which needs only the right to EVAL. Run those that a managed
    service may have removed and that change nothing."""
    with make_client(url) as client:
        database = int(client.connection_pool.connection_kwargs.get("db") or 0)
        wanted = worker_commands(settings, database)
        try:
            denied, absent = _ask(client, Keys(settings.key_prefix).epoch, json.dumps(wanted))
        except Exception as error:
            if redis_refusal(error) is None:
                raise
            return fail("redis rights", f"the user may not run scripts ({error})", REMEDY)
        if url.startswith(REPLICATED_SCHEMES) and is_denied(client.replies([("WAIT", "0", "1")])[0]):
            absent.append("WAIT")
    refused = [wanted[at] for at in denied]
    if any(command[0] not in LOST for command in refused):
        shown = ", ".join(" ".join(command[:2]) for command in refused[:MOST_SHOWN])
        more = f", and {len(refused) - MOST_SHOWN} more" if len(refused) > MOST_SHOWN else ""
        return fail("redis rights", f"the user may not run {shown}{more}", REMEDY)
    if lacking := [name for name in LOST if name in absent or name in {command[0] for command in refused}]:
        return warn(
            "redis rights",
            "; ".join(f"{name} cannot be used here: {LOST[name]}" for name in lacking),
            "accept this of a managed service, or give the user of your own server the rules in ops/redis/users.acl",
        )
    return ok("redis rights", f"the user may use the commands, keys and channels of {settings.key_prefix!r}")


def _ask(client: Client, key: str, wanted: str) -> tuple[list[int], list[str]]:
    """Return the places of the commands that the rules deny, and the names of those that the server does not have."""
    try:
        found = client.execute_command(
            "EVAL", _RIGHTS, 1, key, wanted
        )  # ElastiCache Serverless refuses it without a key
    except Exception as error:
        if not is_denied(error):
            raise
        found = client.execute_command("EVAL", _RIGHTS, 0, wanted)  # the user may not use the key
    return cast("tuple[list[int], list[str]]", tuple(found))


def worker_commands(settings: Settings, database: int) -> list[tuple[str, ...]]:
    """Return the workers' commands, each with a key or a channel. Flower subscribes to patterns, and an ACL allows a
    pattern only if it lists that same pattern.
    """
    keys, queue = Keys(settings.key_prefix), settings.key_prefix + names.TURNS_QUEUE
    plain = [("PING",), ("TIME",), ("MULTI",), ("EXEC",), ("SCRIPT", "LOAD", "")]
    plain += [("SELECT", str(database))] if database else []
    plain += [("SUBSCRIBE", keys.stops), ("PUBLISH", keys.stops, "")]
    plain += [("SUBSCRIBE", f"{keys.alive}x"), ("EVALSHA", "x", "1", keys.epoch), ("LLEN", queue)]
    called = [(command, *[keys.epoch] * 4) for command in script_commands()]
    if settings.broker_url is not None:
        return [*plain, *called]
    binding = f"{settings.key_prefix}_kombu.binding.celery.pidbox"
    pidbox, events = (f"{settings.key_prefix}/{database}.{name}" for name in ("celery.pidbox", "celeryev/worker.*"))
    broker = [("BRPOP", queue, "1"), ("LPUSH", queue, "x"), ("SADD", binding, "x"), ("SMEMBERS", binding)]
    broker += [
        ("BLMPOP", "1", "1", queue, "RIGHT"),
        ("SUBSCRIBE", pidbox),
        ("PUBLISH", pidbox, ""),
        ("PSUBSCRIBE", events),
    ]
    return [*plain, *called, *broker]


def script_commands() -> Sequence[str]:
    """Return the commands that the Lua scripts call."""
    scripts = Path(state.__file__).parent / "lua"
    texts = [path.read_text("utf-8") for path in scripts.rglob("*.lua")]
    return sorted({name.upper() for text in texts for name in _CALLED.findall(text)})
