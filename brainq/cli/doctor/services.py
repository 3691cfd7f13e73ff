"""Check Redis and what depends on it (queues, workers, the sweeper), and SQL and its schema."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.redis.connection import is_denied, make_client
from brainq.adapters.redis.fleet import unwatched
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.sweeper import overdue_s
from brainq.adapters.sql.engine import make_engine, pooler_between, unsafe_settings
from brainq.adapters.sql.migrations.upgrade import HEAD, revision
from brainq.adapters.sql.sql_url import parse_sql_url
from brainq.adapters.sql.store import Store
from brainq.app.wiring import preflight
from brainq.app.wiring.preflight import Check, fail, ok, warn
from brainq.cli.doctor.fleet import check_answers, check_troubles
from brainq.cli.doctor.guard import each_guarded, guarded
from brainq.cli.doctor.replication import check_replication
from brainq.cli.doctor.rights import check_rights
from brainq.cli.output import counted
from brainq.contracts.webhook import parse_webhooks
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.settings.extensions import load_extension
from brainq.runtime.text.service_url import without_password

SKEW_WARN_S = 1.0
LONG_QUEUE = 1000
LATE_S = 15.0
PING_TIMEOUT_S = 1.0
_CELERY_REMEDY = "install a version of celery that brainq supports"
POOL_OF_QUEUE = {queue: pool for pool, queues in names.POOL_QUEUES.items() for queue in queues}


def check_sql_and_content(settings: Settings) -> Generator[Check, None, bool]:
    """Yield the checks of SQL and its content. Returns True if SQL can be read."""
    has_sql = yield from guarded("sql", lambda: check_sql(settings))
    if has_sql:
        if settings.content_keys:
            check_keys = load_extension("brainq.encryption", "doctor")
            yield from each_guarded("keys", lambda: check_keys(settings))
        yield from each_guarded("webhooks", lambda: check_webhooks(settings))
    return has_sql


def check_redis_and_broker(settings: Settings, url: str) -> Generator[Check, None, bool]:
    """Yield the checks of Redis, the broker, the workers and the fleet. Returns True if Redis accepts writes."""
    if settings.broker_url is not None:
        yield from each_guarded("broker", lambda: [preflight.check_broker(settings)])
    takes_writes = yield from guarded("redis", lambda: check_redis(url, settings.key_prefix))
    yield from each_guarded("redis rights", lambda: [check_rights(settings, url)])
    if takes_writes:
        yield from each_guarded("sweeper", lambda: [check_sweeper(settings, url)])
        yield from each_guarded("presence", lambda: [check_presence(settings, url)])
        yield from each_guarded("workers", lambda: check_broker(settings, url))
        yield from each_guarded("fleet", lambda: check_troubles(settings))
    return takes_writes


def check_redis(url: str, prefix: str) -> Generator[Check, None, bool]:
    """Yield the checks of Redis. Returns True if it accepts writes, which later checks need."""
    answer = preflight.check_redis(url, prefix)
    yield answer
    if answer.level != "ok":
        return False
    with make_client(url) as client:
        before = time.time()
        seconds, micros = client.time()
        skew_s = seconds + micros / 1e6 - (before + time.time()) / 2
        info = client.server_info()
        (configured,) = client.replies([("CONFIG", "GET", "maxmemory")])
    yield check_memory(info, is_shared=not url.startswith("unix://"), is_managed=is_denied(configured))
    yield check_appendonly(info, is_managed=is_denied(configured))
    yield _clock(skew_s)
    return True


def check_memory(info: Mapping[str, str], *, is_shared: bool, is_managed: bool = False) -> Check:
    """Check that Redis does not evict keys, and that it has a memory limit.

    is_shared    True unless it is the embedded server of `brainq dev`
    is_managed   True if it does not permit CONFIG, because it is a managed service
    """
    policy, limit = info.get("maxmemory_policy"), info.get("maxmemory")
    if policy is None:
        return warn(
            "redis memory",
            "maxmemory-policy cannot be read here",
            "check in the service's console that it is noeviction, and set an alert on memory there",
        )
    if policy != "noeviction":
        problem = f"maxmemory-policy is {policy}: when memory is full, Redis would delete keys of live turns"
        return fail("redis memory", problem, _how_to_set("maxmemory-policy", "noeviction", is_managed=is_managed))
    used = f"{info.get('used_memory_human', '?')} used, maxmemory-policy noeviction"
    if is_shared and not is_managed and not int(limit or 0):
        return warn(
            "redis memory",
            f"{used}, but no maxmemory: Redis grows until the system kills it, without an earlier alert",
            "set maxmemory to half of the host's memory, with CONFIG SET and in redis.conf",
        )
    return ok("redis memory", used)


def check_appendonly(info: Mapping[str, str], *, is_managed: bool = False) -> Check:
    """Check that Redis writes an append-only file and can rewrite it."""
    if (enabled := info.get("aof_enabled")) is None:
        return warn(
            "redis disk",
            "whether Redis keeps its data on a disk cannot be read here",
            "check in the service's console that it does: otherwise a restart loses live turns",
        )
    if enabled != "1":
        return warn(
            "redis disk",
            "appendonly is off: a restart of Redis loses live turns",
            _how_to_set("appendonly", "yes", is_managed=is_managed),
        )
    if info.get("aof_last_bgrewrite_status", "ok") != "ok":
        return warn(
            "redis disk",
            "the last rewrite of the append-only file failed: the file grows until the disk is full",
            "find the cause in Redis' log (often vm.overcommit_memory = 1 is missing), then run BGREWRITEAOF",
        )
    return ok("redis disk", "appendonly yes")


def _how_to_set(name: str, value: str, *, is_managed: bool) -> str:
    if is_managed:
        return f"set {name} to {value} in the service's console, or choose a service or plan that offers it"
    return f"run CONFIG SET {name} {value}, and set it in redis.conf"


def _clock(skew_s: float) -> Check:
    if abs(skew_s) < SKEW_WARN_S:
        return ok("clock", f"{skew_s * 1000:+.0f} ms from this machine to Redis")
    return warn(
        "clock",
        f"Redis' clock differs from this machine's by {skew_s:+.1f} s; turns use Redis' clock, but logs will not match",
        "run NTP on both machines",
    )


def check_broker(settings: Settings, url: str) -> Iterator[Check]:
    """Check the message format against Celery's, then queue lengths, quarantined messages, and workers."""
    with make_app(settings, broker_url=None if settings.broker_url else url) as app:
        yield check_envelope(app)
        if settings.broker_url is None:
            yield from _queues(settings, url)
        yield from _workers(settings, url, app)


def check_envelope(app: Any) -> Check:
    """Check that a queue message has the headers and the body that the installed Celery writes."""
    arguments = ("s1", "t1", "c1-0", 1)
    theirs = app.amqp.as_task_v2("t1.c1-0.1", names.CALL_RUN, arguments, {}, ignore_result=True)
    ours = json.loads(envelope(names.CALL_RUN, arguments, "t1.c1-0.1", names.READ_ONLY_QUEUE, "t1", "tool"))
    differing = sorted(set(theirs.headers) ^ set(ours["headers"]))
    if differing:
        return fail(
            "envelope",
            f"the headers of queue messages differ from Celery's: {', '.join(differing)}",
            _CELERY_REMEDY,
        )
    if json.loads(ours["body"]) != json.loads(json.dumps(theirs.body)):
        return fail("envelope", "the body of queue messages differs from Celery's", _CELERY_REMEDY)
    return ok("envelope", "queue messages have the format of the installed Celery")


def _queues(settings: Settings, url: str) -> Iterator[Check]:
    with make_client(url) as client:
        pipe = client.pipeline(transaction=False)
        for queue in names.ALL_QUEUES:
            for key in names.queue_keys(settings, queue):
                pipe.llen(key)
        for word in names.TAKEN_IN_TURN.values():
            pipe.zcard(Keys(settings.key_prefix).tenant_queue(word))
        pipe.llen(names.queue_key(settings, names.POISON_LIST))
        *counts, poisoned = cast("list[int]", pipe.execute())
        left = iter(counts)
        lengths = [sum(islice(left, len(names.priorities_of(queue)))) for queue in names.ALL_QUEUES]
        for queue, waiting in zip(names.TAKEN_IN_TURN, left, strict=True):
            lengths[names.ALL_QUEUES.index(queue)] += waiting
    summary = ", ".join(
        f"{queue.removeprefix('brainq.')} {length}" for queue, length in zip(names.ALL_QUEUES, lengths, strict=True)
    )
    longest = max(zip(lengths, names.ALL_QUEUES, strict=True))
    if longest[0] >= LONG_QUEUE:
        yield warn(
            "queues",
            summary,
            f"{longest[1]} is long; run more of `brainq worker {POOL_OF_QUEUE[longest[1]]}`",
        )
    else:
        yield ok("queues", summary)
    yield from _unprefixed(settings, url)
    if poisoned:
        key = names.queue_key(settings, names.POISON_LIST)
        yield warn(
            "quarantine",
            f"{counted(poisoned, 'message')} that no worker could decode",
            f"`redis-cli LRANGE {key} 0 9` shows them with the reason; fix the producer, then run DEL {key}",
        )
    else:
        yield ok("quarantine", "empty")


def _unprefixed(settings: Settings, url: str) -> Iterator[Check]:
    """Warn of messages from a producer without the key prefix. Lists that the user may not read are skipped."""
    prefix = settings.key_prefix
    lists = names.unprefixed_lists(prefix)
    with make_client(url) as client:
        lengths = client.replies([("LLEN", name) for name in lists])
    found = {name: length for name, length in zip(lists, lengths, strict=True) if isinstance(length, int) and length}
    for name, length in found.items():
        yield warn(
            "unprefixed",
            f"{counted(length, 'message')} in {name!r}, which no worker reads: the prefix {prefix!r} is missing",
            f"set broker_transport_options = {{'global_keyprefix': '{prefix}'}} in the producer; then "
            f"`redis-cli LMOVE {shlex.quote(name)} {shlex.quote(prefix + name)} RIGHT LEFT` for each message",
        )


def _workers(settings: Settings, url: str, app: Any) -> Iterator[Check]:
    if not settings.remote_control:
        yield warn("workers", "not checked, because workers do not answer", "set BRAINQ_REMOTE_CONTROL=true")
        return
    answers = cast("dict[str, Any]", app.control.inspect(timeout=PING_TIMEOUT_S).active_queues() or {})
    yield from check_answers(settings, url, answers)
    served = {str(queue["name"]) for queues in answers.values() for queue in queues}
    if not answers:
        yield warn("workers", "no worker answers", "start them with `brainq dev`, `brainq up` or `brainq worker all`")
        return
    unserved = sorted({POOL_OF_QUEUE[queue] for queue in names.ALL_QUEUES if queue not in served})
    summary = f"{counted(len(answers), 'worker')}: {', '.join(sorted(answers))}"
    if unserved:
        missing = ", ".join(unserved)
        yield warn(
            "workers",
            f"{summary}; none for {missing}",
            "turns cannot continue; start " + ", ".join(f"`brainq worker {pool}`" for pool in unserved),
        )
    else:
        yield ok("workers", summary)


def check_sweeper(settings: Settings, url: str) -> Check:
    with make_client(url) as client:
        late_s = overdue_s(client, Keys(settings.key_prefix))
    if late_s < LATE_S:
        return ok("sweeper", f"the oldest check of a turn is {late_s:.1f} s overdue")
    return warn(
        "sweeper",
        f"the check of a turn is {late_s:.0f} s overdue: recovery from lost doorbells and dead workers is late",
        "coordinators run these checks; start one or more with `brainq worker coordinator`",
    )


def check_presence(settings: Settings, url: str) -> Check:
    """Check that the death of each worker would be noticed at once."""
    with make_client(url) as client:
        deaf = unwatched(client, Keys(settings.key_prefix))
    if not deaf:
        return ok("presence", "the death of a worker would be noticed at once")
    return warn(
        "presence",
        f"Redis sees no subscription of {', '.join(deaf)}: if one dies, its work waits {settings.lease_s:g} s",
        "make a proxy in front of Redis forward subscriptions, and give the workers' Redis user +pubsub and +info; "
        "some managed services do not offer this",
    )


def check_sql(settings: Settings) -> Generator[Check, None, bool]:
    """Yield the checks of SQL without creating a database or a schema. Returns True if it can be read."""
    url = settings.sql_address
    answer = preflight.check_sql(url)
    if answer.level == "ok" and (path := parse_sql_url(url).sqlite_path) and not Path(path).exists():
        yield warn(
            "sql",
            f"{without_password(url)} does not exist yet",
            "the first worker or submit creates it; so does `brainq db upgrade`",
        )
        return False
    yield answer
    if answer.level != "ok":
        return False
    engine = make_engine(url)
    try:
        current = revision(engine)
        unsafe = unsafe_settings(engine)
        pooled = pooler_between(engine)
    finally:
        engine.dispose()
    yield from _pooler(pooled)
    yield from check_replication(url)
    if unsafe:
        yield warn(
            "commits",
            f"{' and '.join(f'{name}=off' for name in unsafe)}: a power failure may lose accepted turns and intents",
            f"ALTER SYSTEM SET {unsafe[0]} = on; SELECT pg_reload_conf();",
        )
    if current == HEAD:
        yield ok("schema", f"revision {current}")
    else:
        yield fail("schema", f"revision {current or 'none'}, brainq needs {HEAD}", "run `brainq db upgrade`")
    return current == HEAD


def _pooler(pooled: bool | None) -> Iterator[Check]:
    if pooled:
        yield ok("pooler", "a pooler in transaction mode is in front of Postgres, and brainq is configured for it")
    elif pooled is None:
        yield fail(
            "pooler",
            "two connections share a server process: a pooler in transaction mode is in front of Postgres, but "
            "brainq is not configured for it",
            "set BRAINQ_SQL_POOLED=true, and remove `pooled` and `prepare_threshold` from the URL",
        )


def check_webhooks(settings: Settings) -> Iterator[Check]:
    """Check deliveries, if webhooks are configured. The schema must be up to date."""
    webhooks = parse_webhooks(settings.webhooks.get_secret_value())
    if not webhooks:
        return
    with Store.open(settings.sql_address, migrate=False, keys=settings.key_place) as store:
        unsettled = store.deliveries.unsettled()
    summary = f"{len(webhooks)} configured, {unsettled['pending']} pending deliveries, {unsettled['dead']} dead"
    if unsettled["dead"]:
        yield warn(
            "webhooks",
            summary,
            "`brainq webhook list --state dead` shows errors; `brainq webhook retry all` sends them again",
        )
    else:
        yield ok("webhooks", summary)
