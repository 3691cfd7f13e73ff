"""The broker: our envelope against Celery's own, queue lengths, quarantined items, workers that answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from brainq.broker import names
from brainq.broker.app import make_app
from brainq.broker.envelope import envelope
from brainq.cli.style import counted
from brainq.preflight.check import Check, fail, ok, warn
from brainq.settings import Settings
from brainq.state.connection import make_client
from brainq.state.keys import Keys

LONG_QUEUE = 1000
PING_TIMEOUT_S = 1.0
# What serves each queue, for the remedy.
POOL_OF = {
    **dict.fromkeys(names.COORDINATOR_QUEUES, "coordinator"),
    **dict.fromkeys(names.PARALLEL_QUEUES, "parallel"),
    **dict.fromkeys(names.SERIAL_QUEUES, "serial"),
    **dict.fromkeys(names.FINALIZER_QUEUES, "finalizer"),
}


def check_broker(settings: Settings, url: str) -> Iterator[Check]:
    app = make_app(settings, broker_url=None if settings.broker_url else url)
    try:
        yield check_envelope(app)
        if settings.broker_url is None:
            yield from _queues(settings, url)
        yield from _workers(settings, app)
    finally:
        app.close()


def check_envelope(app: Any) -> Check:
    """Whether a doorbell has the headers and the body that this Celery would write."""
    arguments = ("s1", "t1", "c1-0", 1)
    theirs = app.amqp.as_task_v2("t1.c1-0.1", names.CALL_RUN, arguments, {}, ignore_result=True)
    ours = json.loads(envelope(names.CALL_RUN, arguments, "t1.c1-0.1", names.READ_ONLY_QUEUE, "t1", "tool"))
    differing = sorted(set(theirs.headers) ^ set(ours["headers"]))
    if differing:
        return fail(
            "envelope",
            f"headers differ from Celery's: {', '.join(differing)}",
            "install a celery in brainq's range",
        )
    if json.loads(ours["body"]) != json.loads(json.dumps(theirs.body)):
        return fail("envelope", "the body differs from Celery's", "install a celery in brainq's range")
    return ok("envelope", "doorbells are what Celery itself would send")


def _queues(settings: Settings, url: str) -> Iterator[Check]:
    client = make_client(url)
    try:
        pipe = client.pipeline(transaction=False)
        for queue in names.ALL_QUEUES:
            for key in names.queue_keys(settings, queue):
                pipe.llen(key)
        for word in names.TAKEN_IN_TURN.values():
            pipe.zcard(Keys(settings.prefix).tenant_queue(word))
        pipe.llen(names.queue_key(settings, names.POISON_LIST))
        *found, poisoned = cast("list[int]", pipe.execute())
        left = iter(found)
        lengths = [sum(islice(left, len(names.priorities_of(queue)))) for queue in names.ALL_QUEUES]
        for queue, waiting in zip(names.TAKEN_IN_TURN, left, strict=True):
            lengths[names.ALL_QUEUES.index(queue)] += waiting
    finally:
        client.close()
    said = ", ".join(
        f"{queue.removeprefix('brainq.')} {length}"
        for queue, length in zip(names.ALL_QUEUES, lengths, strict=True)
    )
    longest = max(zip(lengths, names.ALL_QUEUES, strict=True))
    if longest[0] >= LONG_QUEUE:
        yield warn(
            "queues", said, f"{longest[1]} is long: start more workers, `brainq worker {POOL_OF[longest[1]]}`"
        )
    else:
        yield ok("queues", said)
    if poisoned:
        key = names.queue_key(settings, names.POISON_LIST)
        yield warn(
            "quarantine",
            f"{counted(poisoned, 'item')} on the queues no worker could read",
            f"look with `redis-cli LRANGE {key} 0 9`: each says why; then mend the producer and DEL {key}",
        )
    else:
        yield ok("quarantine", "empty")


def _workers(settings: Settings, app: Any) -> Iterator[Check]:
    if not settings.remote_control:
        yield warn(
            "workers", "not asked: BRAINQ_REMOTE_CONTROL is off", "set it to true to have workers answer"
        )
        return
    answers = cast("dict[str, Any]", app.control.inspect(timeout=PING_TIMEOUT_S).active_queues() or {})
    served = {str(queue["name"]) for queues in answers.values() for queue in queues}
    if not answers:
        yield warn(
            "workers",
            "none answers",
            "start them: `brainq dev`, `brainq up`, or `brainq worker coordinator` and so on",
        )
        return
    unserved = sorted({POOL_OF[queue] for queue in names.ALL_QUEUES if queue not in served})
    said = f"{counted(len(answers), 'worker')}: {', '.join(sorted(answers))}"
    if unserved:
        missing = ", ".join(unserved)
        yield warn(
            "workers",
            f"{said}; no {missing}",
            "start "
            + ", ".join(f"`brainq worker {pool}`" for pool in unserved)
            + ": turns stand still without",
        )
    else:
        yield ok("workers", said)
