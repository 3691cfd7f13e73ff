"""Celery's worker options: which ones brainq's workers accept, and what to use instead of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from brainq.adapters.celery.names import pools_of


@dataclass(frozen=True, slots=True)
class RefusedOption:
    """An option that has no effect here, or a harmful one.

    flag: the option as it is typed.
    why: what it would do.
    remedy: what to do instead.
    harmless: values that are accepted, besides None and False.
    """

    flag: str
    why: str
    remedy: str
    harmless: tuple[object, ...] = ()

    @property
    def message(self) -> str:
        return f"{self.flag} is not supported: {self.why}; {self.remedy}"


_THREADS_OF_POOLS = RefusedOption(
    "-c", "each pool of this worker has threads of its own", "set BRAINQ_CONCURRENCY__POOL for each pool"
)
_OWN_QUEUES = "a worker of one pool throws away the messages of another"
_ITS_POOL = "give it queues of its own pools, some of each, or start a worker of other pools with `brainq worker POOL`"

ACCEPTED = frozenset(
    {
        *("hostname", "loglevel", "logfile", "task_events", "heartbeat_interval", "without_heartbeat"),
        *("detach", "pidfile", "uid", "gid", "umask", "executable", "workdir", "quiet", "no_color"),
        # Without effect: threads share one queue of tasks, and there is neither gossip nor mingling.
        *("optimization", "without_gossip", "without_mingle", "schedule_filename"),
    }
)
"""Options that have their usual effect, or none. The names are those of Celery 5.7's command (`celery worker
--help`)."""

REFUSED: Mapping[str, RefusedOption] = {
    "concurrency": RefusedOption(
        "-c auto",
        "its threads mostly wait, so the number of CPUs is no measure",
        "give a number, or set BRAINQ_CONCURRENCY__POOL",
    ),
    "pool": RefusedOption(
        "-P, --pool",
        "brainq's tasks run in threads that it can abandon",
        "omit it, or use -P threads",
    ),
    "autoscale": RefusedOption(
        "--autoscale",
        "a worker has a fixed number of threads",
        "set the number with -c, and start as many workers as `brainq scale` shows",
    ),
    "beat": RefusedOption(
        "-B, --beat", "brainq's sweeper starts each due run once", "create a schedule with `brainq schedule add`"
    ),
    "scheduler": RefusedOption(
        "--scheduler", "brainq's sweeper starts each due run once", "create a schedule with `brainq schedule add`"
    ),
    "queues": RefusedOption("-Q, --queues", _OWN_QUEUES, _ITS_POOL),
    "exclude_queues": RefusedOption("-X, --exclude-queues", "a pool without a queue does nothing", _ITS_POOL),
    "include": RefusedOption(
        "-I, --include",
        "brainq's workers run brainq's tasks only",
        "import it in the module of BRAINQ_APP, or run a Celery app of your own beside them",
    ),
    "max_tasks_per_child": RefusedOption(
        "--max-tasks-per-child", "it belongs to Celery's prefork pool", "set BRAINQ_MAX_TURNS_A_WORKER"
    ),
    "max_memory_per_child": RefusedOption(
        "--max-memory-per-child", "it belongs to Celery's prefork pool", "set BRAINQ_MAX_RSS_MB"
    ),
    "pool_start_method": RefusedOption(
        "--pool-start-method", "it belongs to Celery's prefork pool", "omit it", harmless=("fork",)
    ),
    "time_limit": RefusedOption(
        "--time-limit", "threads cannot be killed", "give the tool `timeout_s`, and isolation='process' to kill it"
    ),
    "soft_time_limit": RefusedOption("--soft-time-limit", "threads cannot be interrupted", "give the tool `timeout_s`"),
    "prefetch_multiplier": RefusedOption(
        "--prefetch-multiplier",
        "messages would wait in this worker while others are idle",
        "omit it, and use -c for more threads",
        harmless=(1,),
    ),
    "disable_prefetch": RefusedOption(
        "--disable-prefetch",
        "with threads it delays work by seconds",
        "omit it: a worker takes only the messages that it runs",
    ),
    "purge": RefusedOption(
        "--purge, --discard",
        "turns would wait until their messages are sent again",
        "end turns with `brainq cancel TURN`",
    ),
    "statedb": RefusedOption(
        "-S, --statedb", "brainq's workers would not remember what was revoked", "end turns with `brainq cancel TURN`"
    ),
}


def find_refusals(options: Mapping[str, Any], queues: Collection[str], pools: Collection[object]) -> list[str]:
    """Return the reasons why a worker may not start with these Celery options, one sentence each.

    queues: those of the worker's pools.
    pools: the classes that may run its tasks.
    """
    refused = [REFUSED[name] for name in _refused(options, queues, pools)]
    if len(pools_of(queues)) > 1 and options.get("concurrency") not in (None, "auto"):
        refused.append(_THREADS_OF_POOLS)
    return [option.message for option in refused]


def _refused(options: Mapping[str, Any], queues: Collection[str], pools: Collection[object]) -> Iterator[str]:
    chosen, served = set(options.get("queues") or queues), pools_of(queues)
    for name, option in REFUSED.items():
        value = options.get(name)
        if value is None or value is False or value in option.harmless:
            continue
        if name == "concurrency":
            is_wrong = value == "auto"
        elif name == "pool":
            is_wrong = value not in pools
        elif name == "queues":
            is_wrong = not chosen <= set(queues) or pools_of(chosen) != served
        elif name == "exclude_queues":
            is_wrong = pools_of(chosen & set(queues) - set(value)) != served
        else:
            is_wrong = True
        if is_wrong:
            yield name
