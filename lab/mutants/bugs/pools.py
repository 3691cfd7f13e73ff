"""Bugs of a worker of several pools: their budgets of threads, their channels, what pauses one, how they are seen."""

from __future__ import annotations

from lab.mutants.bug import Bug

CREDIT = ("tests/unit/adapters/celery/test_credit.py",)
SEVERAL = ("tests/integration/adapters/celery/test_several_pools.py",)
HEALTH = ("tests/unit/adapters/celery/test_worker_health.py",)
OPTIONS = ("tests/unit/adapters/celery/test_worker_options.py",)
WORKER = ("tests/unit/workers/tasks/test_pool_worker.py",)
FLEET = ("tests/integration/fleet/test_fleet.py",)
THREADS = ("tests/unit/runtime/processes/test_pool_threads.py", *CREDIT)

BUGS = (
    Bug(
        "pools of a worker take threads of each other",
        "brainq/adapters/celery/celery57/pool_consumer.py",
        "                channel.qos.pool = pool\n",
        "                channel.qos.pool = next(iter(self._channels), pool)\n",
        SEVERAL,
    ),
    Bug(
        "a full pool requests messages all the same",
        "brainq/adapters/celery/celery57/event_loop.py",
        "        return bool(self.channel._in_poll) or POOL_THREADS.has_free(self.pool, self._wake)\n",
        "        return True\n",
        (*CREDIT, *SEVERAL),
    ),
    Bug(
        "a message gives its thread back twice",
        "brainq/adapters/celery/celery57/event_loop.py",
        "            self._holders.remove(delivery_tag)  # one atomic step: only one caller gives it back\n",
        "            self._holders.discard(delivery_tag)\n",
        CREDIT,
    ),
    Bug(
        "who waits for a thread is not woken",
        "brainq/runtime/processes/pool_threads.py",
        "            alarm = self._alarms.pop(pool, None)\n",
        "            alarm = None\n",
        THREADS,
    ),
    Bug(
        "an alarm that failed is not called again",
        "brainq/runtime/processes/pool_threads.py",
        "            self._alarms.setdefault(pool, alarm)",
        "            pass",
        CREDIT,
    ),
    Bug(
        "items without a thread return in the wrong order",
        "brainq/adapters/celery/celery57/transport.py",
        'connection.send_command("RPUSH", key, *reversed(items))',
        'connection.send_command("RPUSH", key, *items)',
        SEVERAL,
    ),
    Bug(
        "a stop keeps what it had requested until its last task ends",
        "brainq/adapters/celery/celery57/consumer.py",
        "                tasks.return_requested()\n",
        "                pass\n",
        SEVERAL,
    ),
    Bug(
        "a pause of one pool pauses all",
        "brainq/adapters/celery/celery57/consumer.py",
        "        self._wanted = ALL_POOLS - idle if may_consume else frozenset()\n",
        "        self._wanted = ALL_POOLS if may_consume and not idle else frozenset()\n",
        SEVERAL,
    ),
    Bug(
        "a worker is ready although one of its pools cannot work",
        "brainq/adapters/celery/worker_health.py",
        "    is_ready = can_work and state.consumes and not state.gap and not state.idle and not state.paused\n",
        "    is_ready = can_work and state.consumes and not state.gap\n",
        HEALTH,
    ),
    Bug(
        "reads stop when SQL is away, because writes of the same worker do",
        "brainq/workers/tasks/pool_app.py",
        "        if self._pools <= NEED_SQL:\n",
        "        if self._pools & NEED_SQL:\n",
        WORKER,
    ),
    Bug(
        "several pools share one number of threads",
        "brainq/adapters/celery/worker_options.py",
        '    if len(pools_of(queues)) > 1 and options.get("concurrency") not in (None, "auto"):\n',
        '    if len(pools_of(queues)) > 9 and options.get("concurrency") not in (None, "auto"):\n',
        OPTIONS,
    ),
    Bug(
        "the fleet shows one pool of several",
        "brainq/workers/tasks/announcer.py",
        "(self._report(processes[pool], worker, pool)) for pool in self._pools]\n",
        "(self._report(processes[pool], worker, pool)) for pool in self._pools[:1]]\n",
        FLEET,
    ),
    Bug(
        "a thread from before a restart of the pools adds to their budget",
        "brainq/runtime/processes/pool_threads.py",
        "min(self._free[pool] + 1, self.limits[pool])",
        "self._free[pool] + 1",
        THREADS,
    ),
)
