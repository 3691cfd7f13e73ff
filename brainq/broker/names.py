"""Queue and task names, each written once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

from brainq.contracts.status import Effect
from brainq.settings.deployment import Settings

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
"""The queues that each pool serves."""

ALL_QUEUES = tuple(queue for queues in POOL_QUEUES.values() for queue in queues)

TASK_PREFIX = "brainq."
"""Begins every task name; a worker serves no other."""

TURN_ADVANCE = "brainq.turn.advance"
"""Arguments: session_id, turn_id, fence."""

TURN_SUBMIT = "brainq.turn.submit"
"""Keyword arguments: the fields of a TurnRequest. The one message with content."""

CALL_RUN = "brainq.call.run"
"""Arguments: session_id, turn_id, call_id, attempt. Shown as `brainq.call.run:<tool>`."""

_NAMED = r":[A-Za-z_][A-Za-z0-9_-]{0,63}"
SHOWN_NAME = re.compile(re.escape(CALL_RUN) + _NAMED, re.ASCII)


def shown_name(tool: str) -> str:
    """What monitors call the task of a call of `tool`. Never with an id: names become metric labels."""
    return f"{CALL_RUN}:{tool}"


FINALIZE_STEP = "brainq.finalize.step"
"""Arguments: session_id, turn_id, step_name. Shown as `brainq.finalize.step:<step>`."""

JUDGE_RUN = "brainq.judge.run"
"""Arguments: session_id, turn_id, judge. Shown as `brainq.judge.run:<judge>`."""

NAMED_BY_ARGUMENT = {FINALIZE_STEP: 2, JUDGE_RUN: 2}
"""Tasks that are shown by one of their arguments, and which."""

_SHOWN_PART = re.compile(_NAMED, re.ASCII)


def shown_part(task: str, name: object) -> str | None:
    """What monitors call a task of this step or judge; None for a name that could be anything."""
    part = f":{name}"
    return task + part if _SHOWN_PART.fullmatch(part) else None


# brainq.call.run is not here: its queue follows from the call's effect, and a wrong guess would run a write
# in the parallel pool.
TASK_QUEUES = {
    TURN_ADVANCE: TURNS_QUEUE,
    TURN_SUBMIT: TURNS_QUEUE,
    FINALIZE_STEP: FINALIZE_QUEUE,
    JUDGE_RUN: JUDGES_QUEUE,
}

POISON_LIST = "brainq.poison"
"""The Redis list (under the key prefix) that keeps items no worker could accept."""

UNSERVED_HEADER = "brainq-unserved"
"""Of a foreign submit: the header by which it asks for what is not served."""

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
"""Queues whose first lists tenants take turns for, where the state's Redis has them: as scripts call those."""


def tool_queue(effect: Effect) -> str:
    """The queue that carries calls of this effect."""
    return _TOOL_QUEUES[effect]


def effects_of_queues(queues: Iterable[str]) -> frozenset[Effect]:
    """The effects whose calls these queues carry."""
    return frozenset(effect for effect, queue in _TOOL_QUEUES.items() if queue in queues)


def build_queue(queue: str, build: str) -> str:
    """The queue beside this one that only the workers of `build` read."""
    return f"{queue}@{build}"


def shared_name(name: str) -> str:
    """A queue's or a list's name, without whose build's it is."""
    queue, at, build = name.partition("@")
    return queue + build[build.find(_PRIORITY_SEPARATOR) :] if at and _PRIORITY_SEPARATOR in build else queue


def script_word(queue: str) -> str:
    """What scripts call a queue."""
    return _WORDS[queue]


def queue_key(settings: Settings, queue: str) -> str:
    """The Redis list that is this queue: LPUSH rings, workers pop from the right end."""
    return settings.prefix + queue


LATER_PRIORITY = 6
"""Celery's Redis transport keeps messages of this priority in a list of their own, read after priority 0."""

_PRIORITY_SEPARATOR = "\x06\x16"
_OWN_PRIORITIES = (0, LATER_PRIORITY)
_ALL_PRIORITIES = tuple(range(10))


def priorities_of(queue: str) -> tuple[int, ...]:
    """The priorities whose lists the workers of a queue read, in this order.

    We use two. Foreign producers send to one queue, and which lists their messages reach follows from their own
    settings: all that Celery knows are read there.
    """
    return _ALL_PRIORITIES if queue == TURNS_QUEUE else _OWN_PRIORITIES


_STOCK_PRIORITIES = (0, 3, 6, 9)  # kombu's Redis transport: `priority_steps`


def list_name(queue: str, priority: int) -> str:
    """The list of a queue's messages of this priority, without the key prefix, as kombu names it."""
    return f"{queue}{_PRIORITY_SEPARATOR}{priority}" if priority else queue


def read_order(queues: Sequence[str]) -> list[str]:
    """The lists that a worker of these queues reads, first to last: a list of a higher priority goes before any queue's
    next one, and the queues keep their order within a priority."""
    lists = [(priority, queue) for queue in queues for priority in priorities_of(queue)]
    return [list_name(queue, priority) for priority, queue in sorted(lists, key=itemgetter(0))]


def later_key(settings: Settings, queue: str) -> str:
    """The Redis list of this queue's messages that wait behind its others."""
    return settings.prefix + list_name(queue, LATER_PRIORITY)


def unprefixed_lists() -> tuple[str, ...]:
    """Return the lists of a stock Celery, with its four priorities, that does not know of the key prefix."""
    return tuple(list_name(queue, priority) for queue in ALL_QUEUES for priority in _STOCK_PRIORITIES)


def queue_keys(settings: Settings, queue: str) -> tuple[str, ...]:
    """All lists of a queue, in the order workers read them."""
    return tuple(settings.prefix + list_name(queue, priority) for priority in priorities_of(queue))
