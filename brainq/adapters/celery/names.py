"""The names of queues and tasks, each defined once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

from brainq.contracts.status import Effect
from brainq.runtime.settings.deployment import Settings

TURNS_QUEUE = "brainq.turns"
READ_ONLY_QUEUE = "brainq.tools.read_only"
LOCAL_WRITE_QUEUE = "brainq.tools.local_write"
NETWORK_QUEUE = "brainq.tools.network"
DESTRUCTIVE_QUEUE = "brainq.tools.destructive"
FINALIZE_QUEUE = "brainq.finalize"
JUDGES_QUEUE = "brainq.judges"

COORDINATOR_QUEUES = (TURNS_QUEUE,)
PARALLEL_QUEUES = (READ_ONLY_QUEUE,)
SERIAL_QUEUES = (LOCAL_WRITE_QUEUE, NETWORK_QUEUE, DESTRUCTIVE_QUEUE)
FINALIZER_QUEUES = (FINALIZE_QUEUE, JUDGES_QUEUE)
POOL_QUEUES = {
    "coordinator": COORDINATOR_QUEUES,
    "parallel": PARALLEL_QUEUES,
    "serial": SERIAL_QUEUES,
    "finalizer": FINALIZER_QUEUES,
}
"""The queues of each pool."""

_POOL_OF = {queue: pool for pool, queues in POOL_QUEUES.items() for queue in queues}

ALL_QUEUES = tuple(queue for queues in POOL_QUEUES.values() for queue in queues)

TASK_PREFIX = "brainq."
"""The prefix of every task name. A worker serves no other tasks."""

TURN_ADVANCE = "brainq.turn.advance"
"""Arguments: session_id, turn_id, fence."""

TURN_SUBMIT = "brainq.turn.submit"
"""Keyword arguments: the fields of a TurnRequest. The one message with content."""

CALL_RUN = "brainq.call.run"
"""Arguments: session_id, turn_id, call_id, attempt. Shown as `brainq.call.run:<tool>`."""

_NAMED = r":[A-Za-z_][A-Za-z0-9_-]{0,63}"
SHOWN_NAME = re.compile(re.escape(CALL_RUN) + _NAMED, re.ASCII)


def shown_name(tool: str) -> str:
    """Return the display name for the task of a call of `tool`.

    It never has an id, because names become metric labels.
    """
    return f"{CALL_RUN}:{tool}"


FINALIZE_STEP = "brainq.finalize.step"
"""Arguments: session_id, turn_id, step_name. Shown as `brainq.finalize.step:<step>`."""

JUDGE_RUN = "brainq.judge.run"
"""Arguments: session_id, turn_id, judge. Shown as `brainq.judge.run:<judge>`."""

NAMED_BY_ARGUMENT = {FINALIZE_STEP: 2, JUDGE_RUN: 2}
"""Tasks that are displayed under one of their arguments, with its position."""

_SHOWN_PART = re.compile(_NAMED, re.ASCII)


def shown_part(task: str, name: object) -> str | None:
    """Return the display name for a task of this step or judge, or None if the name could be anything."""
    part = f":{name}"
    return task + part if _SHOWN_PART.fullmatch(part) else None


# brainq.call.run is missing here: its queue follows from the call's effect, and a wrong guess would run a write in the
# parallel pool.
TASK_QUEUES = {
    TURN_ADVANCE: TURNS_QUEUE,
    TURN_SUBMIT: TURNS_QUEUE,
    FINALIZE_STEP: FINALIZE_QUEUE,
    JUDGE_RUN: JUDGES_QUEUE,
}

POISON_LIST = "brainq.poison"
"""The Redis list (under the key prefix) of items that no worker could accept."""

UNSERVED_HEADER = "brainq-unserved"
"""The header of a foreign submit that requests something unsupported."""

_TOOL_QUEUES = {
    Effect.READ_ONLY: READ_ONLY_QUEUE,
    Effect.LOCAL_WRITE: LOCAL_WRITE_QUEUE,
    Effect.NETWORK: NETWORK_QUEUE,
    Effect.DESTRUCTIVE: DESTRUCTIVE_QUEUE,
}

_WORDS = {
    TURNS_QUEUE: "turns",
    FINALIZE_QUEUE: "finalize",
    JUDGES_QUEUE: "judges",
    **{queue: effect.value for effect, queue in _TOOL_QUEUES.items()},
}

TAKEN_IN_TURN = {FINALIZE_QUEUE: "finalize"} | {queue: effect.value for effect, queue in _TOOL_QUEUES.items()}
"""The queues whose first lists are shared fairly between tenants, if they are in the Redis of the state, with their
names in scripts.
"""


def tool_queue(effect: Effect) -> str:
    return _TOOL_QUEUES[effect]


def effects_of_queues(queues: Iterable[str]) -> frozenset[Effect]:
    """Return the effects of the calls in these queues."""
    return frozenset(effect for effect, queue in _TOOL_QUEUES.items() if queue in queues)


def build_queue(queue: str, build: str) -> str:
    """Return the queue beside this one that only the workers of `build` read."""
    return f"{queue}@{build}"


def pool_of(queue: str) -> str:
    """Return the pool that serves a queue, or a queue of one build beside it."""
    return _POOL_OF[queue.partition("@")[0]]


def pools_of(queues: Iterable[str]) -> tuple[str, ...]:
    """Return the pools that serve these queues, in the order of POOL_QUEUES."""
    served = {pool_of(queue) for queue in queues}
    return tuple(pool for pool in POOL_QUEUES if pool in served)


def shared_name(name: str) -> str:
    """Return the name of a queue or list without the build in it."""
    queue, at, build = name.partition("@")
    return queue + build[build.find(_PRIORITY_SEPARATOR) :] if at and _PRIORITY_SEPARATOR in build else queue


def script_word(queue: str) -> str:
    """Return the name of a queue in scripts."""
    return _WORDS[queue]


def queue_key(settings: Settings, queue: str) -> str:
    """Return the Redis list of this queue: LPUSH rings, and workers pop from the right end."""
    return settings.key_prefix + queue


LATER_PRIORITY = 6
"""Celery's Redis transport keeps messages of this priority in a separate list, which is read after priority 0."""

_PRIORITY_SEPARATOR = "\x06\x16"
_OWN_PRIORITIES = (0, LATER_PRIORITY)
_ALL_PRIORITIES = tuple(range(10))


def priorities_of(queue: str) -> tuple[int, ...]:
    """Return the priorities whose lists the workers of a queue read, in this order.

    brainq uses two. Foreign producers send to one queue, and their own settings decide which lists their messages
    reach: all of Celery's lists are read there.
    """
    return _ALL_PRIORITIES if queue == TURNS_QUEUE else _OWN_PRIORITIES


_STOCK_PRIORITIES = (0, 3, 6, 9)  # kombu's Redis transport: `priority_steps`


def list_name(queue: str, priority: int) -> str:
    """Return the list of a queue's messages of this priority, without the key prefix, under kombu's name."""
    return f"{queue}{_PRIORITY_SEPARATOR}{priority}" if priority else queue


def read_order(queues: Sequence[str]) -> list[str]:
    """Return the lists that a worker of these queues reads, in order: a list of a higher priority comes before the next
    list of any queue, and the queues keep their order within a priority."""
    lists = [(priority, queue) for queue in queues for priority in priorities_of(queue)]
    return [list_name(queue, priority) for priority, queue in sorted(lists, key=itemgetter(0))]


def later_key(settings: Settings, queue: str) -> str:
    """Return the Redis list of this queue's messages that can wait for the others."""
    return settings.key_prefix + list_name(queue, LATER_PRIORITY)


def unprefixed_lists(prefix: str) -> tuple[str, ...]:
    """Return the lists, with its four priorities, of a stock Celery without the key prefix. Returns none on a Redis
    Cluster, where keys without the prefix's hash tag are on other nodes."""
    if prefix.startswith("{"):
        return ()
    return tuple(list_name(queue, priority) for queue in ALL_QUEUES for priority in _STOCK_PRIORITIES)


def queue_keys(settings: Settings, queue: str) -> tuple[str, ...]:
    """Return all lists of a queue, in the order in which workers read them."""
    return tuple(settings.key_prefix + list_name(queue, priority) for priority in priorities_of(queue))
